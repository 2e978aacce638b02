"""Report of `contract diff`, as a document and as JSON, and places of its findings in contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mcp_bindgen.diff.selectors import parse_steps
from mcp_bindgen.report.document import (
    NOWHERE,
    Document,
    Evidence,
    Finding,
    Findings,
    Level,
    Place,
    Section,
    code,
    literal,
    plural,
    prose,
    strong,
)
from mcp_bindgen.report.places import descend
from mcp_bindgen.report.record import as_json
from mcp_bindgen.spec.jsonc import Located
from mcp_bindgen.spec.pointer import join, split, value_at

from ..checks import contents
from ..model import LISTINGS
from ..text import read
from .verdicts import ContractComparison, ContractFinding
from .verdicts import Level as Impact

Places = Callable[[ContractFinding], Place]
"""Function from a finding to its place in the new contract."""

_LEVELS = {
    Impact.BREAKING: (Level.ERROR, "Breaks existing clients"),
    Impact.RISKY: (Level.WARNING, "Risky for existing clients"),
    Impact.SAFE: (Level.NOTE, "Safe for existing clients"),
}
_REVERSE = {Impact.BREAKING: "Breaks", Impact.RISKY: "Risky for"}
_MIN_GROUP = 4
_MAX_NAMES = 3


def nowhere(finding: ContractFinding) -> Place:
    """Return no place, for formats that do not show it."""
    return NOWHERE


def document(comparison: ContractComparison, *, witness: bool = False, places: Places = nowhere) -> Document:
    """Return the report: a section for each level, the worst first.

    Args:
        comparison: The comparison.
        witness: True to include an example for each finding that has one.
        places: Function from a finding to its place in the new contract.
    """
    sections: list[Section] = []
    for impact, (_, title) in _LEVELS.items():
        found = [finding for finding in comparison.findings if finding.level is impact]
        if found:
            items = [_finding(finding, others, places(finding), witness) for finding, others in _grouped(found)]
            sections.append(Section(f"{title} ({len(found)})", [Findings(items)]))
    return Document("contract diff", [Section(summary(comparison), sections)])


def record(comparison: ContractComparison) -> dict[str, Any]:
    """Return the report as JSON: every finding, for both directions."""
    return {
        "breaking": comparison.breaking,
        "reverseBreaking": comparison.reverse_breaking,
        "findings": [as_json(finding, or_null=("hint",)) for finding in comparison.findings],
    }


def summary(comparison: ContractComparison) -> str:
    """Return the effect on existing clients and the number of changes in one line."""
    if not comparison.findings:
        return "Nothing changed."
    counts = {impact: sum(finding.level is impact for finding in comparison.findings) for impact in _LEVELS}
    parts = [f"{count} {impact.name.lower()}" for impact, count in counts.items() if count]
    verdict = "Existing clients break" if comparison.breaking else "Existing clients continue to work"
    if not comparison.breaking and counts[Impact.RISKY]:
        verdict = "Existing clients may be affected"
    return f"{verdict}: {plural(len(comparison.findings), 'change')} ({', '.join(parts)})."


def _finding(finding: ContractFinding, others: Sequence[str], place: Place, witness: bool) -> Finding:
    reverse = _REVERSE.get(finding.reverse)
    return Finding(
        rule=finding.rule,
        level=_LEVELS[finding.level][0],
        message=f"{code(finding.subject)} {literal(finding.message)}",
        effect=f"{strong(reverse)} new clients with the old server." if reverse else "",
        note=_same_change(finding, others),
        fix=prose(finding.hint) if finding.level is not Impact.SAFE else "",
        place=place,
        evidence=_evidence(finding) if witness else None,
    )


def _grouped(found: Sequence[ContractFinding]) -> Iterator[tuple[ContractFinding, list[str]]]:
    """Yield each finding; several with the same change are one, with the names of the other entries."""
    groups: dict[object, list[ContractFinding]] = {}
    for finding in found:
        key = finding.rule, finding.kind, finding.place, finding.message, finding.hint, finding.reverse
        groups.setdefault(key, []).append(finding)
    for group in groups.values():
        if len(group) < _MIN_GROUP or group[0].kind == "server":
            yield from ((finding, []) for finding in group)
        else:
            yield group[0], [finding.name for finding in group[1:]]


def _same_change(finding: ContractFinding, others: Sequence[str]) -> str:
    if not others:
        return ""
    more = ", ..." if len(others) > _MAX_NAMES else ""
    count = plural(len(others), f"other {finding.kind}")
    return f"The same change in {count}: {', '.join(map(code, others[:_MAX_NAMES]))}{more}"


def _evidence(finding: ContractFinding) -> Evidence | None:
    example = finding.example
    if example is None:
        return None
    old, new = ("allows" if accepts else "refuses" for accepts in (example.old_accepts, example.new_accepts))
    return Evidence(f"Old {old}, new {new}", example.instance, has_value=True)


_SCHEMAS = {"argument": "inputSchema", "result": "outputSchema"}


class ContractPlaces:
    """Places of the findings of `contract diff` in the new contract.

    Args:
        path: The file of the new contract, JSON or YAML.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._document = contents(read(path))
        text = path.read_text("utf-8-sig")
        self._located: Located | _LocatedYaml = Located(text) if path.suffix == ".json" else _LocatedYaml(text)

    def __call__(self, finding: ContractFinding) -> Place:
        """Return the place of a finding, as deep as its words lead; the document itself for an entry that is gone."""
        pointer = self._pointer(finding)
        return Place(str(self._path), pointer, self._located.line(pointer))

    def of_tool(self, name: str, pointer: str) -> Place:
        """Return the place of a JSON Pointer in a tool."""
        entry = self._entry("tool", name)
        whole = entry + pointer if entry else ""
        return Place(str(self._path), whole, self._located.line(whole))

    def _entry(self, kind: str, name: str) -> str:
        """Return the pointer to an entry; empty if there is none."""
        for member, listing in LISTINGS.items():
            entries: Sequence[Mapping[str, Any]] = self._document.get(member, ()) if listing.kind == kind else ()
            for index, entry in enumerate(entries):
                if entry.get(listing.key) == name:
                    return join("", member, index)
        return ""

    def _pointer(self, finding: ContractFinding) -> str:
        entry = self._entry(finding.kind, finding.name)
        if not entry:
            return ""
        kind, _, path = finding.place.partition(" ")
        schema = join(entry, _SCHEMAS.get(kind, kind))
        if value_at(self._document, schema) is None:
            return entry
        return descend(self._document, schema, parse_steps(f".{path}") or ()) if kind in _SCHEMAS else schema


class _LocatedYaml:
    def __init__(self, text: str) -> None:
        yaml: Any = YAML(typ="safe", pure=True)
        self._root: Any = yaml.compose(text)

    def line(self, pointer: str) -> int:
        node = mark = self._root
        for token in split(pointer):
            pairs = node.value if node.id == "mapping" else [(None, item) for item in node.value]
            names = [name.value if name is not None else str(index) for index, (name, _) in enumerate(pairs)]
            if token not in names:
                break
            name, node = pairs[names.index(token)]
            mark = name or node
        return int(mark.start_mark.line) + 1
