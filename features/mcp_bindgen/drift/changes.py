"""Changes between two contracts of a server: the verdict for its callers, and the changed texts, of each entry.

Calls are judged by what callers of the old contract send, results by what they accept. Texts have no part in a verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from mcp_bindgen.app.catalog import KINDS, SCOPES, Entry, Kind
from mcp_bindgen.app.dialects import draft, edited, objects
from mcp_bindgen.app.validation import MOST_STEPS, Complexity, is_larger

from .callers import Callers
from .inclusion import Answer, prove, with_formats
from .restriction import Unsupported, original, read, sent
from .snapshot import Snapshot, digest
from .texts import TextChange, changed_texts, server_texts

MAX_PARTS = 20_000
"""Maximum number of JSON values in an entry."""

HINTS = frozenset(
    {"default", "format", "contentEncoding", "contentMediaType", "contentSchema", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that refuse no value, but say how to use it."""

PROSE = frozenset({"description", "title", "examples", "example", "$comment", "markdownDescription"})
"""Keywords with texts for people and models."""

_CHANGED_MEANING = frozenset({"unevaluatedItems", "$recursiveRef", "$recursiveAnchor"})
"""Keywords of 2019-09 that 2020-12 reads in another way."""

Part: TypeAlias = Literal["arguments", "result"]


class Verdict(IntEnum):
    """What a change means to callers; a greater value is worse."""

    SAME = 0
    """Nothing changed."""
    NOTATION = 1
    """Callers can send and get the same; it is written in another way."""
    COMPATIBLE = 2
    """All that callers send is accepted, and all that they read is there; something else changed."""
    UNPROVEN = 3
    """It is neither proven that callers work nor that they break."""
    BREAKING = 4
    """Callers break."""

    @property
    def is_open(self) -> bool:
        """True if callers work."""
        return self <= Verdict.COMPATIBLE


@dataclass(frozen=True)
class Witness:
    """Value that proves a break: arguments that are refused, or a result that is not what was promised.

    Attributes:
        value: The value.
        place: Path to the problem in the value: names and indices.
        problem: Error message of the schema that refuses it.
    """

    value: Any
    place: Sequence[str | int] = ()
    problem: str = ""


@dataclass(frozen=True)
class Relation:
    """Relation between the schemas of one part of an entry.

    Attributes:
        part: The part.
        old: The old schema.
        new: The new schema.
        verdict: The verdict for the callers.
        reason: Reason in a few words.
        witness: Value that proves a break.
    """

    part: Part
    old: Any
    new: Any
    verdict: Verdict = Verdict.UNPROVEN
    reason: str = ""
    witness: Witness | None = None

    @property
    def schemas(self) -> tuple[Any, Any]:
        """Schema of the sender, schema of the receiver."""
        return (self.old, self.new) if self.part == "arguments" else (self.new, self.old)


Search: TypeAlias = Callable[[Any, Any], Witness | None]
"""Search for a value that the first schema allows and the second one refuses."""


@dataclass(frozen=True)
class Change:
    """Change of a server or of an entry.

    Attributes:
        kind: Kind of the entry, or `server`.
        name: Name or URI; empty for the server.
        verdict: The verdict for callers.
        reasons: Reasons of the verdict, in a few words each.
        texts: The changed texts.
        relations: Relations between schemas that differ.
        is_new: True if the old contract lacks the entry.
        age: Number of contracts between the compared contract and the newest one of a lock; 0 for the newest.
    """

    kind: Kind | Literal["server"]
    name: str
    verdict: Verdict
    reasons: Sequence[str] = ()
    texts: Sequence[TextChange] = ()
    relations: Sequence[Relation] = ()
    is_new: bool = False
    age: int = 0

    @property
    def is_open(self) -> bool:
        """True if callers work and no text changed."""
        return self.verdict.is_open and not self.texts and not self.is_new


_REASONS: Mapping[tuple[Part, Verdict], str] = {
    ("arguments", Verdict.NOTATION): "it accepts the same arguments",
    ("arguments", Verdict.COMPATIBLE): "it accepts all arguments that were valid",
    ("arguments", Verdict.UNPROVEN): "it is not proven that it accepts all arguments that were valid",
    ("arguments", Verdict.BREAKING): "it refuses arguments that were valid",
    ("result", Verdict.NOTATION): "its result is the same",
    ("result", Verdict.COMPATIBLE): "its result fits the old schema",
    ("result", Verdict.UNPROVEN): "it is not proven that its result fits the old schema",
    ("result", Verdict.BREAKING): "its result may be outside of the old schema",
}


def compare(
    old: Snapshot, new: Snapshot, callers: Callers, *, isolated: bool = False, search: Search | None = None
) -> list[Change]:
    """Return the changes of a server and its entries, the worst first; entries that are the same are left out.

    Args:
        old: The contract that the callers know.
        new: The contract of the server.
        callers: Profile of the callers.
        isolated: True to prove in another process, within a time limit; for servers without a review.
        search: Search for values that prove breaks; without one, schemas are never breaking.
    """
    pairs: list[tuple[Kind, str, Entry, Entry]] = []
    found = [change_of_server(old, new)]
    for kind in KINDS:
        ours, theirs = old.entries[kind], new.entries[kind]
        found += (Change(kind, name, Verdict.BREAKING, ("it is gone",)) for name in ours if name not in theirs)
        found += (
            Change(kind, name, Verdict.COMPATIBLE, ("it is new",), is_new=True) for name in theirs if name not in ours
        )
        pairs += ((kind, name, entry, theirs[name]) for name, entry in ours.items() if name in theirs)
    found += changes(pairs, callers, isolated=isolated, search=search)
    return sorted((one for one in found if one.verdict or one.texts), key=lambda one: -one.verdict)


def changes(
    pairs: Sequence[tuple[Kind, str, Entry, Entry]],
    callers: Callers,
    *,
    isolated: bool = False,
    search: Search | None = None,
) -> list[Change]:
    """Return a change for each pair of entries: kind, name, old entry and new entry; the arguments are as of `compare`."""
    drifts = [_change(*pair) for pair in pairs]
    related = iter(
        relate([one for found in drifts for one in found.relations], callers, isolated=isolated, search=search)
    )
    return [_with_relations(found, [next(related) for _ in found.relations]) for found in drifts]


def _with_relations(found: Change, relations: Sequence[Relation]) -> Change:
    verdict = max([found.verdict, *(one.verdict for one in relations)])
    reasons = [one.reason for one in relations if one.verdict == verdict]
    return replace(
        found,
        verdict=verdict,
        reasons=tuple(dict.fromkeys([*(found.reasons if found.verdict == verdict else ()), *reasons])),
        relations=relations,
    )


def relate(
    relations: Sequence[Relation], callers: Callers, *, isolated: bool = False, search: Search | None = None
) -> list[Relation]:
    """Return relations with their verdicts; the arguments are as of `compare`."""
    stated = [_Stated.of(one, callers) for one in relations]
    asked = [one.questions() for one in stated]
    answers = iter(prove([question for questions in asked for question in questions], isolated=isolated))
    judged = zip(stated, asked, strict=True)
    return [one.judged([next(answers) for _ in questions], search) for one, questions in judged]


@dataclass(frozen=True)
class _Stated:
    """Schemas of a relation as the callers of a profile use them.

    Attributes:
        relation: The relation.
        problem: Reason why the schemas cannot be compared; empty if they can.
        old: What is sent by the old schema.
        new: What is sent by the new schema.
        accepted: What the receiver accepts.
        has_formats: True if formats are conditions of proofs.
    """

    relation: Relation
    problem: str = ""
    old: Any = None
    new: Any = None
    accepted: Any = None
    has_formats: bool = False

    @classmethod
    def of(cls, relation: Relation, callers: Callers) -> _Stated:
        is_call = relation.part == "arguments"
        sender, receiver = relation.schemas
        drafts = {draft(relation.old), draft(relation.new)}
        try:
            if any(Complexity(one).exceeds(MOST_STEPS) for one in relation.schemas):
                return cls(relation, "the schemas are too complex")
            if len(drafts) > 1 and _CHANGED_MEANING & {word for node in objects([*relation.schemas]) for word in node}:
                return cls(relation, "their dialects differ")
            old, new = (sent(one, callers, is_call=is_call) for one in (relation.old, relation.new))
            accepted = original(receiver) if is_call else read(receiver, callers)
        except Unsupported as error:
            return cls(relation, str(error))
        except RecursionError:
            return cls(relation, "the schemas are nested too deeply")
        return cls(relation, "", old, new, accepted, callers.formats)

    @property
    def sent(self) -> Any:
        """What the sender sends."""
        return self.old if self.relation.part == "arguments" else self.new

    def questions(self) -> list[tuple[Any, Any]]:
        """Return the pairs of schemas to prove."""
        if self.problem:
            return []
        sides = [self.sent, self.accepted, self.old, self.new]
        sender, accepted, old, new = with_formats(*sides) if self.has_formats else sides
        return [(sender, accepted), (old, new), (new, old)]

    def judged(self, answers: Sequence[Answer], search: Search | None) -> Relation:
        """Return the relation with its verdict."""
        part, verdict, witness = self.relation.part, Verdict.UNPROVEN, None
        if answers and answers[0] is Answer.YES:
            is_same = all(one is Answer.YES for one in answers) and _hints(self.old) == _hints(self.new)
            verdict = Verdict.NOTATION if is_same else Verdict.COMPATIBLE
        elif answers and search is not None and (witness := search(self.sent, self.accepted)):
            verdict = Verdict.BREAKING
        reason = _REASONS[part, verdict] + (f": {self.problem}" if self.problem else "")
        return replace(self.relation, verdict=verdict, reason=reason, witness=witness)


def _hints(schema: Any) -> frozenset[str]:
    """Return the hints in a schema, each with its keyword."""
    nodes = objects(schema)
    return frozenset(json.dumps([key, one[key]], sort_keys=True) for one in nodes for key in one.keys() & HINTS)


def _change(kind: Kind, name: str, old: Entry, new: Entry) -> Change:
    """Return the change of an entry with its relations to prove."""
    if digest(old) == digest(new):
        return Change(kind, name, Verdict.SAME)
    if is_larger(new, MAX_PARTS):
        return Change(kind, name, Verdict.UNPROVEN, [f"it has more than {MAX_PARTS} parts"])
    stated: list[tuple[Verdict, str]] = []
    relations: list[Relation] = []
    match kind:
        case "tool":
            relations.append(Relation("arguments", old.get("inputSchema", {}), new.get("inputSchema", {})))
            was, now = old.get("outputSchema"), new.get("outputSchema")
            if was is not None and now is not None:
                relations.append(Relation("result", was, now))
            elif was is not None:
                stated.append((Verdict.BREAKING, "its result is no longer structured"))
            elif now is not None:
                stated.append((Verdict.COMPATIBLE, "its result is structured now"))
        case "prompt":
            sides = [schema_of_arguments(one.get("arguments") or []) for one in (old, new)]
            relations.append(Relation("arguments", *sides))
        case "resource" | "template":
            was, now = old.get("mimeType"), new.get("mimeType")
            if was != now:
                verdict = Verdict.COMPATIBLE if was is None else Verdict.BREAKING
                stated.append((verdict, f"its media type was {was or 'not stated'}, is {now or 'not stated'}"))
    needed, needs = (set(one.get(SCOPES) or ()) for one in (old, new))
    stated += [(Verdict.BREAKING, f"it needs the scope {scope}") for scope in sorted(needs - needed)]
    stated += [(Verdict.COMPATIBLE, f"it needs no scope {scope} any more") for scope in sorted(needed - needs)]
    worst = max(stated, default=(Verdict.SAME, ""))[0]
    return Change(
        kind,
        name,
        worst,
        tuple(reason for verdict, reason in stated if verdict == worst),
        changed_texts(kind, old, new),
        [one for one in relations if digest(_without_prose(one.old)) != digest(_without_prose(one.new))],
    )


def _without_prose(schema: Any) -> Any:
    return edited(schema, lambda _, found: [found.pop(word) for word in PROSE & found.keys()])


def change_of_server(old: Snapshot, new: Snapshot) -> Change:
    """Return the change of the identity and the instructions of a server."""
    stated = [("version", old.info.get("version"), new.info.get("version")), ("revision", old.revision, new.revision)]
    reasons = [
        f"its {what} was {was or 'not stated'}, is {now or 'not stated'}" for what, was, now in stated if was != now
    ]
    verdict = Verdict.COMPATIBLE if reasons else Verdict.SAME
    if old.info.get("name") != new.info.get("name"):
        verdict, reasons = (
            Verdict.BREAKING,
            ["its name was {!r}, is {!r}".format(*(one.info.get("name") for one in (old, new)))],
        )
    return Change("server", "", verdict, tuple(reasons), server_texts(old, new))


def schema_of_arguments(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of arguments of the type string, which are listed with their names."""
    kept = ("title", "description", "enum")
    properties = {one["name"]: {"type": "string", **{key: one[key] for key in kept if key in one}} for one in entries}
    required = [one["name"] for one in entries if one.get("required")]
    return {"type": "object", "properties": properties, "required": required}
