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
from mcp_bindgen.app.validation import Complexity, is_larger
from mcp_bindgen.app.values import MOST_STEPS
from mcp_bindgen.json_schema.dialects import draft
from mcp_bindgen.json_schema.keywords import APPLIED, HINTS, KEYWORDS, PROSE, Place, children, edited, objects
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.model.json_types import is_object

from .callers import Callers
from .inclusion import prove, with_formats, without_common
from .restriction import Unsupported, limited, original, read, sent
from .snapshot import Snapshot, digest
from .texts import TextChange, changed_texts, server_texts

MAX_PARTS = 20_000
"""Maximum number of JSON values in an entry."""

_CHANGED_MEANING = frozenset({"unevaluatedItems", "$recursiveRef", "$recursiveAnchor"})
"""Keywords of 2019-09 that 2020-12 reads in another way."""

_EXCLUSIVE = frozenset({"oneOf", "unevaluatedProperties"})
"""Keywords by which a schema may refuse a value because a part of the schema was restricted."""

Pair: TypeAlias = tuple[Kind, str, Entry, Entry]
"""Kind, name, old entry and new entry."""

Part: TypeAlias = Literal["arguments", "result"]


class Verdict(IntEnum):
    """Meaning of a change for callers; a greater value is worse."""

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
        problem: Reason why the schemas cannot be compared; empty if they can.
        witness: Value that proves a break.
    """

    part: Part
    old: Any
    new: Any
    verdict: Verdict = Verdict.UNPROVEN
    problem: str = ""
    witness: Witness | None = None

    @property
    def schemas(self) -> tuple[Any, Any]:
        """Schema of the sender, schema of the receiver."""
        return (self.old, self.new) if self.part == "arguments" else (self.new, self.old)

    @property
    def reason(self) -> str:
        """Reason of the verdict in a few words."""
        return _REASONS[self.part, self.verdict] + (f": {self.problem}" if self.problem else "")


Search: TypeAlias = Callable[[Any, Any, Any], Witness | None]
"""Search for a value that the first schema allows, the second one refuses, and the third one allows, too."""


@dataclass(frozen=True)
class Fact:
    """Change that needs no proof.

    Attributes:
        verdict: The verdict for callers.
        rule: Kind of change, e.g. `scope-added`.
        message: Predicate of the sentence about it.
    """

    verdict: Verdict
    rule: str
    message: str


@dataclass(frozen=True)
class Change:
    """Change of a server or of an entry.

    Attributes:
        kind: Kind of the entry, or `server`.
        name: Name or URI; empty for the server.
        facts: Changes that need no proof.
        texts: The changed texts.
        relations: Relations between schemas that differ.
        is_new: True if the old contract lacks the entry.
        age: Number of contracts between the compared contract and the newest one of a lock; 0 for the newest.
    """

    kind: Kind | Literal["server"]
    name: str
    facts: Sequence[Fact] = ()
    texts: Sequence[TextChange] = ()
    relations: Sequence[Relation] = ()
    is_new: bool = False
    age: int = 0

    @property
    def verdict(self) -> Verdict:
        """The verdict for callers: the worst of all facts and relations."""
        verdicts = [*(one.verdict for one in self.facts), *(one.verdict for one in self.relations)]
        return max(verdicts, default=Verdict.SAME)

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of the verdict, in a few words each."""
        facts = [one.message for one in self.facts if one.verdict == self.verdict]
        return [*facts, *(one.reason for one in self.relations if one.verdict == self.verdict)]

    @property
    def is_open(self) -> bool:
        """True if callers work and no text changed."""
        return self.verdict.is_open and not self.texts and not self.is_new


_REASONS: Mapping[tuple[Part, Verdict], str] = {
    ("arguments", Verdict.NOTATION): "accepts the same arguments",
    ("arguments", Verdict.COMPATIBLE): "accepts all arguments that were valid",
    ("arguments", Verdict.UNPROVEN): "may refuse arguments that were valid, which is not proven",
    ("arguments", Verdict.BREAKING): "refuses arguments that were valid",
    ("result", Verdict.NOTATION): "has the same result",
    ("result", Verdict.COMPATIBLE): "has a result that fits the old schema",
    ("result", Verdict.UNPROVEN): "may have a result outside of the old schema, which is not proven",
    ("result", Verdict.BREAKING): "may have a result outside of the old schema",
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
    pairs: list[Pair] = []
    found = [change_of_server(old, new)]
    for kind in KINDS:
        ours, theirs = old.entries[kind], new.entries[kind]
        removed = [Fact(Verdict.BREAKING, f"{kind}-removed", "is gone")]
        added = [Fact(Verdict.COMPATIBLE, f"{kind}-added", "is new")]
        found += (Change(kind, name, removed) for name in ours if name not in theirs)
        found += (Change(kind, name, added, is_new=True) for name in theirs if name not in ours)
        pairs.extend((kind, name, entry, theirs[name]) for name, entry in ours.items() if name in theirs)
    found += changes(pairs, callers, isolated=isolated, search=search)
    return sorted((one for one in found if one.verdict or one.texts), key=lambda one: -one.verdict)


def changes(
    pairs: Sequence[Pair], callers: Callers, *, isolated: bool = False, search: Search | None = None
) -> list[Change]:
    """Return a change for each pair of entries; the other arguments are as of `compare`."""
    drifts = [_change(*pair) for pair in pairs]
    asked = [one for found in drifts for one in found.relations]
    related = iter(relate(asked, callers, isolated=isolated, search=search))
    return [replace(found, relations=[next(related) for _ in found.relations]) for found in drifts]


def relate(
    relations: Sequence[Relation], callers: Callers, *, isolated: bool = False, search: Search | None = None
) -> list[Relation]:
    """Return relations with their verdicts; the arguments are as of `compare`."""
    require("comparing schemas", "jsonschema_rs", extra="app")
    stated = [_Stated.of(one, callers) for one in relations]
    answers = iter(prove([question for one in stated for question in one.questions], isolated=isolated))
    return [one.judged([next(answers) for _ in one.questions], search) for one in stated]


@dataclass(frozen=True)
class _Stated:
    """Schemas of a relation as the callers of a profile use them.

    Attributes:
        relation: The relation.
        problem: Reason why the schemas cannot be compared; empty if they can.
        sent: What is sent.
        accepted: What the receiver accepts.
        stated: What the sender may send by its original schema.
        questions: Pairs of schemas to prove: the receiver accepts all that is sent; what is sent by the schema of the
            other side includes it, and is included in it.
        is_restricted: True if the receiver accepts all that would be sent by its own schema.
        has_same_hints: True if both schemas have the same hints.
    """

    relation: Relation
    problem: str = ""
    sent: Any = None
    accepted: Any = None
    stated: Any = None
    questions: Sequence[tuple[Any, Any]] = ()
    is_restricted: bool = False
    has_same_hints: bool = False

    @classmethod
    def of(cls, relation: Relation, callers: Callers) -> _Stated:
        is_call = relation.part == "arguments"
        drafts = {draft(one) for one in relation.schemas}
        try:
            if any(Complexity(one).exceeds(MOST_STEPS) for one in relation.schemas):
                return cls(relation, "the schemas are too complex")
            if len(drafts) > 1 and _CHANGED_MEANING & {word for node in objects([*relation.schemas]) for word in node}:
                return cls(relation, "their dialects differ")
            sender, receiver = relation.schemas
            ours, theirs = (sent(one, callers, is_call=is_call) for one in (sender, receiver))
            accepted = original(receiver) if is_call else read(receiver, callers)
            stated = limited(sender, callers)
            is_restricted = not any(_EXCLUSIVE & node.keys() for node in objects(receiver))
            has_same_hints = _hints(ours) == _hints(theirs)
        except Unsupported as error:
            return cls(relation, str(error))
        except RecursionError:
            return cls(relation, "the schemas are nested too deeply")
        sides = with_formats(ours, theirs, accepted) if callers.formats else (ours, theirs, accepted)
        one, other, whole = without_common(*sides) if is_restricted else sides
        questions = [(one, whole), (one, other), (other, one)]
        return cls(relation, "", ours, accepted, stated, questions, is_restricted, has_same_hints)

    def judged(self, answers: Sequence[bool], search: Search | None) -> Relation:
        """Return the relation with its verdict, given an answer to each question."""
        verdict, witness = Verdict.UNPROVEN, None
        if answers and (answers[0] or (self.is_restricted and answers[1])):
            is_same = self.has_same_hints and all(answers[1:])
            verdict = Verdict.NOTATION if is_same else Verdict.COMPATIBLE
        elif answers and search is not None and (witness := search(self.sent, self.accepted, self.stated)):
            verdict = Verdict.BREAKING
        return replace(self.relation, verdict=verdict, problem=self.problem, witness=witness)


def _hints(schema: Any) -> frozenset[str]:
    """Return the hints in a restricted schema, each with the first place in a value where it applies."""
    found, seen = set[str](), set[int]()
    pending: list[tuple[str, Any]] = [("", schema)]
    for place, node in pending:  # grows in the loop
        if not is_object(node) or id(node) in seen:
            continue
        seen.add(id(node))
        found |= {json.dumps([place, key, node[key]], sort_keys=True) for key in node.keys() & HINTS}
        if "$ref" in node:
            pending.append((place, schema["$defs"].get(node["$ref"].rpartition("/")[2])))
        for keyword, name, part in children(node):
            if keyword in APPLIED:
                is_same = KEYWORDS[keyword].place is Place.SAME
                pending.append((place if is_same else f"{place}/{keyword}/{name}", part))
    return frozenset(found)


def _change(kind: Kind, name: str, old: Entry, new: Entry) -> Change:
    """Return the change of an entry with its relations to prove."""
    if digest(old) == digest(new):
        return Change(kind, name)
    if is_larger(new, MAX_PARTS):
        return Change(kind, name, [Fact(Verdict.UNPROVEN, "too-large", f"has more than {MAX_PARTS} parts")])
    facts: list[Fact] = []
    relations: list[Relation] = []
    match kind:
        case "tool":
            relations.append(Relation("arguments", old.get("inputSchema", {}), new.get("inputSchema", {})))
            was, now = old.get("outputSchema"), new.get("outputSchema")
            if was is not None and now is not None:
                relations.append(Relation("result", was, now))
            elif was is not None:
                facts.append(Fact(Verdict.BREAKING, "output-schema-removed", "has no structured result any more"))
            elif now is not None:
                facts.append(Fact(Verdict.COMPATIBLE, "output-schema-added", "has a structured result now"))
        case "prompt":
            before, after = (schema_of_arguments(one.get("arguments") or []) for one in (old, new))
            relations.append(Relation("arguments", before, after))
        case "resource" | "template":
            was, now = old.get("mimeType"), new.get("mimeType")
            if was != now:
                verdict = Verdict.COMPATIBLE if was is None else Verdict.BREAKING
                message = f"had the media type {was or 'not stated'}, has {now or 'not stated'}"
                facts.append(Fact(verdict, "mime-type-changed", message))
    needed, needs = (set(one.get(SCOPES) or ()) for one in (old, new))
    facts += [Fact(Verdict.BREAKING, "scope-added", f"needs the scope {one}") for one in sorted(needs - needed)]
    facts += [
        Fact(Verdict.COMPATIBLE, "scope-removed", f"does not need the scope {one} any more")
        for one in sorted(needed - needs)
    ]
    different = [one for one in relations if digest(_without_prose(one.old)) != digest(_without_prose(one.new))]
    return Change(kind, name, facts, changed_texts(kind, old, new), different)


def _without_prose(schema: object) -> Any:
    return edited(schema, lambda _, found: [found.pop(word) for word in PROSE & found.keys()])


def change_of_server(old: Snapshot, new: Snapshot) -> Change:
    """Return the change of the identity and the instructions of a server."""
    was, now = old.info.get("name"), new.info.get("name")
    facts = [] if was == now else [Fact(Verdict.BREAKING, "server-renamed", f"had the name {was!r}, has {now!r}")]
    stated = (("version", old.info.get("version"), new.info.get("version")), ("revision", old.revision, new.revision))
    facts += [
        Fact(Verdict.COMPATIBLE, f"{what}-changed", f"had the {what} {was or 'not stated'}, has {now or 'not stated'}")
        for what, was, now in stated
        if was != now
    ]
    return Change("server", "", facts, server_texts(old, new))


def schema_of_arguments(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of arguments of the type string, which are listed with their names."""
    kept = ("title", "description", "enum")
    properties = {one["name"]: {"type": "string", **{key: one[key] for key in kept if key in one}} for one in entries}
    required = [one["name"] for one in entries if one.get("required")]
    return {"type": "object", "properties": properties, "required": required}
