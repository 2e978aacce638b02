"""Run of all vectors on a testee: disagreements, and those that a list expects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic import Field as Member
from pydantic.dataclasses import dataclass as checked

from mcp_bindgen.runtime.model.json_types import ABSENT, differences, is_array
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import join, split
from mcp_bindgen.spec.toml import quoted, read_toml

from .format import Vector, VectorFile, first_problem
from .testee import Answer, Implementation, Testee

Change = Literal["lost", "lost-null", "added", "changed"]
"""A member is missing, a member that was null is missing, a member is new, a value is another one."""
Kind = Change | Literal["false-accept", "false-reject", "misread", "not-json", "error", "crash", "timeout"]
"""Kind of a disagreement: the written document differs, an invalid document is accepted, a valid one is rejected, a
message is read as another type, the written text is no JSON, or the testee fails."""

LOSSY = ("lost", "lost-null", "added", "changed", "not-json")


@dataclass(frozen=True)
class Disagreement:
    """A vector that a testee judges otherwise.

    Attributes:
        file: Path of the vector file without `.json`.
        revision: Revision.
        vector: The vector.
        kind: Kind of the disagreement.
        pointer: Place of the difference, for a document that is written otherwise; else the place of the vector.
        answer: Reason or document of the testee.
        reason: Reason in the list of expected disagreements; empty if it is not expected.
    """

    file: str
    revision: str
    vector: Vector
    kind: Kind
    pointer: str
    answer: str
    reason: str = ""

    @property
    def name(self) -> str:
        """Name of the vector in all files."""
        return f"{self.file}:{self.vector.id}"

    @property
    def cluster(self) -> tuple[str, str, str]:
        """Kind, rule and name of the member: disagreements with the same cause have the same."""
        names = [token for token in split(self.pointer) if not token.isdecimal()]
        rule = "round-trip" if self.kind in LOSSY else self.vector.rule
        return self.kind, rule, names[-1] if names else ""


@checked(frozen=True, config=ConfigDict(extra="forbid"))
class Expected:
    """Entry in a list of expected disagreements.

    Attributes:
        kind: Kind of the disagreements.
        vectors: Names of vectors; `*` stands for any text.
        reason: Reason to expect them.
    """

    kind: Kind
    vectors: tuple[str, ...]
    reason: str = Member(min_length=1)

    def covers(self, one: Disagreement) -> bool:
        """Return whether the entry expects a disagreement."""
        return one.kind == self.kind and any(fnmatchcase(one.name, pattern) for pattern in self.vectors)


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        implementation: The implementation.
        disagreements: The disagreements, expected ones included.
        judged: Revision -> number of vectors that the testee judged.
        unsupported: Revision -> number of vectors that it did not support.
        stale: Patterns in the list of expected disagreements without a disagreement.
    """

    implementation: Implementation
    disagreements: tuple[Disagreement, ...]
    judged: Counter[str] = field(default_factory=Counter[str])
    unsupported: Counter[str] = field(default_factory=Counter[str])
    stale: tuple[str, ...] = ()

    @property
    def unexpected(self) -> list[Disagreement]:
        """The disagreements that are not expected."""
        return [one for one in self.disagreements if not one.reason]


def run(
    files: Sequence[VectorFile],
    testee: Testee,
    expected: Sequence[Expected] = (),
    *,
    prose: bool = False,
    progress: Callable[[str], None] = lambda words: None,
) -> Run:
    """Give every vector to a testee.

    Args:
        files: The vectors.
        testee: The testee.
        expected: Expected disagreements.
        prose: True to count documents as well that the schema accepts and only a text forbids.
        progress: Called with a few words before each file.
    """
    found: list[Disagreement] = []
    judged, unsupported = Counter[str](), Counter[str]()
    for number, file in enumerate(files, 1):
        progress(f"{testee.implementation.label}: {file.name} ({number} of {len(files)}), {len(found)} disagreements")
        names = ("revision", "definition", "extension", "method", "kind", "envelope", "senders")
        about = {name: value for name in names if (value := getattr(file, name))}
        for vector in file.vectors:
            if vector.schema and vector.verdict == "invalid" and not prose:
                continue
            answer = testee.parse({**about, "text": vector.sent})
            if answer.status == "unsupported":
                unsupported[file.revision] += 1
                continue
            judged[file.revision] += 1
            if (difference := disagreement(vector, answer)) is not None:
                kind, pointer = difference
                found.append(Disagreement(file.name, file.revision, vector, kind, pointer, answer.text))
    reasons = [next((entry.reason for entry in expected if entry.covers(one)), "") for one in found]
    marked = tuple(replace(one, reason=reason) for one, reason in zip(found, reasons, strict=True))
    return Run(testee.implementation, marked, judged, unsupported, tuple(_stale(expected, found)))


def disagreement(vector: Vector, answer: Answer) -> tuple[Kind, str] | None:
    """Return the kind and the place of the disagreement of an answer, or None if it agrees."""
    match answer.status:
        case "unsupported":
            return None
        case "rejected":
            return ("false-reject", vector.pointer) if vector.verdict == "valid" else None
        case "accepted" if vector.verdict == "invalid":
            return "false-accept", vector.pointer
        case "accepted":
            return _written(vector, answer)
        case "error" if vector.verdict == "tolerated":
            return None
        case status:
            return status, vector.pointer


def _written(vector: Vector, answer: Answer) -> tuple[Kind, str] | None:
    if vector.verdict == "tolerated" and "limit" in vector.tags:
        return None
    try:
        wrote = parse(answer.text)
    except (ValueError, RecursionError):
        return "not-json", vector.pointer
    found = min((list(changes(form, wrote)) for form in (parse(vector.sent), *vector.wrote)), key=len)
    difference = found[0] if found else None
    if difference is None and vector.reads_as and answer.reads_as and vector.reads_as != answer.reads_as:
        return "misread", vector.pointer
    return difference


def _stale(expected: Iterable[Expected], found: Sequence[Disagreement]) -> Iterable[str]:
    for entry in expected:
        names = [one.name for one in found if one.kind == entry.kind]
        for pattern in entry.vectors:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield f"{entry.kind} {pattern}"


def clusters(found: Iterable[Disagreement]) -> dict[tuple[str, str, str], list[Disagreement]]:
    """Return disagreements by cluster, the largest first; in each, the one with the smallest document is first."""
    grouped: dict[tuple[str, str, str], list[Disagreement]] = {}
    for one in found:
        grouped.setdefault(one.cluster, []).append(one)
    for members in grouped.values():
        members.sort(key=lambda one: (len(one.vector.sent), one.name))
    return dict(sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])))


# --- lists of expected disagreements --------------------------------------------------------------------------------


def read_expected(path: Path) -> tuple[Expected, ...]:
    """Return a list of expected disagreements; raise `BadInput` if the file is no such list."""
    try:
        return TypeAdapter(tuple[Expected, ...]).validate_python(read_toml(path).get("expected", ()))
    except ValidationError as error:
        message, pointer = first_problem(error)
        raise BadInput(message, file=path, pointer=f"/expected{pointer}", fix="give kind, vectors and reason") from None


def write_expected(found: Iterable[Disagreement], reason: str) -> str:
    """Return a list that expects disagreements, as TOML; those with a reason keep it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in found:
        grouped.setdefault((one.kind, one.reason or reason), []).append(one.name)
    entries: list[str] = []
    for (kind, why), names in sorted(grouped.items()):
        vectors = "".join(f"    {quoted(name)},\n" for name in sorted(names))
        entries.append(f"[[expected]]\nkind = {quoted(kind)}\nreason = {quoted(why)}\nvectors = [\n{vectors}]\n")
    return "\n".join(entries)


def parse(text: str) -> Any:
    """Return a JSON document with exact numbers; raise `ValueError` if it is none."""
    return json.loads(text, parse_float=Decimal)


def changes(read: Any, wrote: Any) -> Iterator[tuple[Change, str]]:
    """Yield each difference with its place; documents are equal as in JSON Schema, where 1 is 1.0."""
    for path, old, new in differences(read, wrote):
        longer = [is_array(old) and is_array(new) and len(one) > len(other) for one, other in ((old, new), (new, old))]
        if new is ABSENT or longer[0]:
            yield ("lost-null" if old is None else "lost"), join("", *path)
        else:
            yield ("added" if old is ABSENT or longer[1] else "changed"), join("", *path)
