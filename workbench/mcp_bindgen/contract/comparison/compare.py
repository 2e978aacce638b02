"""Compare two contracts: what the changes of a server mean to its callers, in sentences.

`drift` gives the verdict of each change; the differences between schemas say what changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_bindgen.app.catalog import KINDS, Entry, Kind
from mcp_bindgen.diff.finding import RULES
from mcp_bindgen.diff.location import suffix
from mcp_bindgen.diff.selectors import parse_steps
from mcp_bindgen.drift.callers import Callers
from mcp_bindgen.drift.changes import Change, Relation, Verdict, Witness, compare
from mcp_bindgen.drift.snapshot import Snapshot
from mcp_bindgen.json_schema.keywords import PROSE
from mcp_bindgen.report.places import descend
from mcp_bindgen.runtime.similar_names import similar
from mcp_bindgen.spec.errors import shortened

from ..model import Contract
from .places import Difference, differences

_SCHEMAS = {"arguments": "/inputSchema", "result": "/outputSchema"}
_LEADING = re.compile(r"""^(?:\.|\["(.*?)"\](?=[.\[{]|$))""")
"""Member name at the start of a place."""

_MAX_LENGTH = 60
"""Maximum number of characters of a value in a sentence."""

_MAX_SENTENCES = 3
"""Maximum number of differences in the sentence about a schema."""


@dataclass(frozen=True)
class Detail:
    """Difference between the schemas of one part of an entry.

    Attributes:
        rule: Kind of difference, e.g. `field-became-required`.
        pointer: JSON Pointer in the new entry, or in the old one if the new one lacks it.
        place: Place in words, e.g. `argument city`.
        message: Predicate of the sentence with the place.
    """

    rule: str
    pointer: str
    place: str
    message: str

    @property
    def sentence(self) -> str:
        """The difference in one line."""
        return f"{self.place} {self.message}"


@dataclass(frozen=True)
class ContractFinding:
    """Change between two contracts.

    Attributes:
        verdict: What it means to callers.
        rule: Kind of change, e.g. `tool-removed`, `arguments-breaking`.
        kind: Kind of the changed entry; `server` for a change of the whole server.
        name: Its name or URI.
        pointer: JSON Pointer in the new entry, or in the old one if the new one lacks it; empty for the whole entry.
        message: Predicate of the sentence about the entry.
        details: Differences between the schemas, the one at the witness first.
        witness: Value that proves a break.
        hint: Recommended action; may be empty.
    """

    verdict: Verdict
    rule: str
    kind: Kind | Literal["server"]
    name: str
    pointer: str
    message: str
    details: Sequence[Detail] = ()
    witness: Witness | None = None
    hint: str = ""

    @property
    def subject(self) -> str:
        """The changed entry, e.g. `tool get-forecast`."""
        return f"{self.kind} {self.name}".rstrip()

    @property
    def sentence(self) -> str:
        """The change in one line."""
        return f"{self.subject} {self.message}"


@dataclass(frozen=True)
class ContractComparison:
    """Comparison of two contracts.

    Attributes:
        callers: Profile of the callers for whom the verdicts hold.
        changes: Changes of the server and its entries.
        findings: Changes in sentences, the worst first.
    """

    callers: Callers
    changes: Sequence[Change]
    findings: Sequence[ContractFinding]

    @property
    def texts(self) -> Sequence[Change]:
        """Changes of texts, which have no part in verdicts."""
        return [one for one in self.changes if one.texts]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        return max((one.verdict for one in self.findings), default=Verdict.SAME)


def compare_contracts(old: Contract, new: Contract, callers: Callers) -> ContractComparison:
    """Return the changes between two contracts, worst first; the order of entries is ignored."""
    from .witness import witness  # the validator takes time to load

    sides = Snapshot.of(old.document), Snapshot.of(new.document)
    changes = compare(*sides, callers, search=witness)
    found = [finding for one in changes for finding in _findings(one, *sides)]
    return ContractComparison(callers, changes, sorted(found, key=lambda one: -one.verdict))


def _findings(change: Change, old: Snapshot, new: Snapshot) -> list[ContractFinding]:
    kind, name = change.kind, change.name
    nothing: Mapping[str, Entry] = {}
    ours, theirs = (nothing if kind == "server" else side.entries.get(kind, nothing) for side in (old, new))
    hint = ""
    if kind != "server" and name in ours and name not in theirs:
        come = {key: one for key, one in theirs.items() if key not in ours}
        hint = _successor(kind, name, ours[name], come)
    found = [ContractFinding(one.verdict, one.rule, kind, name, "", one.message, hint=hint) for one in change.facts]
    entry: Entry = theirs.get(name, {})
    return [*found, *(_finding(kind, name, entry, one) for one in change.relations)]


def _finding(kind: Any, name: str, entry: Entry, relation: Relation) -> ContractFinding:
    """Return the finding about a part of an entry whose schema changed."""
    proof = relation.witness
    steps = (
        ""
        if proof is None
        else "".join("[]" if isinstance(step, int) else suffix("field", step) for step in proof.place)
    )
    shown = [_detail(kind, entry, relation, one) for one in _differences(relation)]
    here = _place(kind, relation.part, steps)
    shown.sort(key=lambda one: proof is None or not one.place.startswith(here))
    pointer = shown[0].pointer if shown else _SCHEMAS[relation.part]
    sentences = [one.sentence for one in shown[:_MAX_SENTENCES]]
    more = [f"and {len(shown) - _MAX_SENTENCES} more"] if len(shown) > _MAX_SENTENCES else []
    message = ": ".join([relation.reason, *(["; ".join([*sentences, *more])] if sentences else [])])
    rule = f"{relation.part}-{relation.verdict.name.lower()}"
    return ContractFinding(relation.verdict, rule, kind, name, pointer, message, shown, proof)


def _differences(relation: Relation) -> list[Difference]:
    if relation.problem:  # a walk through them may be endless, too
        return []
    found = [one for one in differences(relation.old, relation.new) if one.keyword not in PROSE]
    decisive = [one for one in found if one.keyword != "additionalProperties"]
    return decisive if decisive and relation.verdict is not Verdict.NOTATION else found


def _detail(kind: Kind, entry: Entry, relation: Relation, one: Difference) -> Detail:
    rule = RULES.get(one.rule)
    if rule is not None:
        message = rule.says.format(old=one.old, new=one.new)
    elif one.keyword == "type" and one.old and one.new:
        message = f"was {_short(one.old)}, is {_short(one.new)}"
    elif one.old and one.new:
        message = f"has another `{one.keyword}`: was {_short(one.old)}, is {_short(one.new)}"
    else:
        message = f"has `{one.keyword}` now: {_short(one.new)}" if one.new else f"has no `{one.keyword}` any more"
    root = _SCHEMAS[relation.part] if kind == "tool" else ""
    pointer = descend(entry, root, parse_steps(one.place) or ())
    return Detail(one.rule or "schema-changed", pointer, _place(kind, relation.part, one.place), message)


def _place(kind: Kind, part: str, steps: str) -> str:
    """Return a place in words: `argument city`, `result days[]`."""
    noun = {"arguments": "argument" if steps else "arguments", "result": "result"}[part]
    return f"{noun} {_LEADING.sub(lambda found: found[1] or '', steps)}".rstrip()


def _successor(kind: Kind, name: str, item: Entry, come: Mapping[str, Entry]) -> str:
    """Return a hint about a possible replacement of a removed entry: one of the same shape or with a close name."""
    same = [other for other, new in come.items() if _shape(kind, new) == _shape(kind, item) and _shape(kind, item)]
    near = similar(name, come)
    found: Sequence[str] = same if len(same) == 1 else near
    return f"Perhaps it is {found[0]} now." if found else ""


def _shape(kind: Kind, item: Entry) -> Any:
    """Return the arguments of an entry; the name of one whose key is a URI."""
    if KINDS[kind].key != "name":
        return item.get("name")
    return item.get("inputSchema", {}).get("properties") or item.get("arguments")


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _MAX_LENGTH)
