"""Report of `contract diff`, as a document and as JSON, and places of its findings in contracts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mcp_bindgen.drift.changes import Change, Verdict
from mcp_bindgen.drift.texts import TextChange
from mcp_bindgen.json_schema.pointer import existing
from mcp_bindgen.report import document as doc
from mcp_bindgen.report.record import as_json
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import join, split
from mcp_bindgen.spec.jsonc import Located

from ..checks import contents
from ..model import LISTINGS
from ..text import read
from ..wording import hints
from .compare import ContractComparison, ContractFinding

Places = Callable[[ContractFinding], doc.Place]
"""Function from a finding to its place in the new contract."""

_TITLES = {
    Verdict.BREAKING: (doc.Level.ERROR, "Breaking"),
    Verdict.UNPROVEN: (doc.Level.WARNING, "Unproven"),
    Verdict.COMPATIBLE: (doc.Level.NOTE, "Compatible"),
    Verdict.NOTATION: (doc.Level.NOTE, "Written in another way"),
}
_MIN_GROUP = 4
_MAX_NAMES = 3
_MAX_DIFF_LINES = 60


def nowhere(finding: ContractFinding) -> doc.Place:
    """Return no place, for formats that do not show it."""
    return doc.NOWHERE


def document(comparison: ContractComparison, *, witness: bool = False, places: Places = nowhere) -> doc.Document:
    """Return the report: a section for each verdict, the worst first, and one for changed texts.

    Args:
        comparison: The comparison.
        witness: True to include the value that proves a break.
        places: Function from a finding to its place in the new contract.
    """
    sections: list[doc.Section] = []
    for verdict, (_, title) in _TITLES.items():
        found = [finding for finding in comparison.findings if finding.verdict is verdict]
        if found:
            sections.append(
                doc.Section(f"{title} ({len(found)})", [finding_list(found, witness=witness, places=places)])
            )
    if comparison.texts:
        blocks = [block for group in _alike(comparison.texts) for block in text_blocks(*group)]
        sections.append(doc.Section(f"Changed texts ({len(comparison.texts)})", blocks))
    return doc.Document("contract diff", [doc.Section(summary(comparison), sections)])


def finding_list(found: Sequence[ContractFinding], *, witness: bool = False, places: Places = nowhere) -> doc.Findings:
    """Return findings for a report; several with the same change are one. The arguments are as of `document`."""
    return doc.Findings([_finding(one, others, places(one), witness) for one, others in _grouped(found)])


def record(comparison: ContractComparison) -> dict[str, Any]:
    """Return the report as JSON: the profile, every finding and the changed texts."""
    return {
        "callers": comparison.callers.name,
        "verdict": word(comparison.verdict),
        "findings": [
            {
                "verdict": word(one.verdict),
                "rule": one.rule,
                "kind": one.kind,
                one.kind: one.name,
                "pointer": one.pointer,
                "message": one.message,
                "details": [as_json(detail) for detail in one.details],
                "witness": None if one.witness is None else as_json(one.witness),
                "hint": one.hint or None,
            }
            for one in comparison.findings
        ],
        "texts": [
            {"kind": one.kind, one.kind: one.name, "place": place, "old": list(old), "new": list(new)}
            for one in comparison.texts
            for place, old, new in one.texts
        ],
    }


def word(verdict: Verdict) -> str:
    """Return a verdict as it is written in JSON."""
    return verdict.name.lower()


def summary(comparison: ContractComparison) -> str:
    """Return the effect on callers and the number of changes in one line."""
    if not (comparison.findings or comparison.texts):
        return "Nothing changed."
    counts = {verdict: sum(one.verdict is verdict for one in comparison.findings) for verdict in _TITLES}
    parts = [f"{count} {word(verdict)}" for verdict, count in counts.items() if count]
    parts += [f"{doc.plural(len(comparison.texts), 'entry', 'entries')} with changed texts"] if comparison.texts else []
    verb = {Verdict.BREAKING: "break", Verdict.UNPROVEN: "may break"}.get(comparison.verdict, "continue to work")
    return f"{comparison.callers.name.capitalize()} callers {verb}: {', '.join(parts)}."


def _alike(changes: Sequence[Change]) -> list[list[Change]]:
    """Return changes in groups with the same changed texts."""
    groups: dict[str, list[Change]] = {}
    for one in changes:
        groups.setdefault(repr((one.kind, one.texts)), []).append(one)
    return list(groups.values())


def text_blocks(change: Change, *others: Change) -> Iterator[doc.Block]:
    """Yield a finding about the changed texts of an entry, and their diff; `others` have the same changes."""
    subject = f"{change.kind} {change.name}".rstrip()
    warnings = [f"{place}: {hint}" for place, old, new in change.texts for hint in new_hints(old, new)]
    message = f"{doc.code(subject)} has {doc.plural(len(change.texts), 'changed text')}"
    effect = " ".join(f"{doc.literal(printable(words))}." for words in warnings)
    note = _same_change(change.kind, [one.name for one in others])
    yield doc.Findings([doc.Finding("text-changed", doc.Level.NOTE, message, effect, note)])
    yield doc.Code(text_diff(change.texts), "diff")


def new_hints(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the hints about new texts that the old ones did not have."""
    known = {hint for text in old for hint in hints(text)}
    return [hint for text in new for hint in hints(text) if hint not in known]


def text_diff(texts: Sequence[TextChange]) -> str:
    """Return the changed texts as a diff; hidden characters are shown as JSON escapes."""
    lines: list[str] = []
    for place, old, new in texts:
        before, after = ([line for text in side for line in text.split("\n")] for side in (old, new))
        lines += [f"@@ {place} @@", *list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]]
    lines = [line for line in lines if not (line.startswith("@@ -") and line.endswith(" @@"))]
    more = [f"... and {len(lines) - _MAX_DIFF_LINES} more lines"] if len(lines) > _MAX_DIFF_LINES else []
    return "".join(f"{printable(line)}\n" for line in (*lines[:_MAX_DIFF_LINES], *more))


def _finding(finding: ContractFinding, others: Sequence[str], place: doc.Place, witness: bool) -> doc.Finding:
    proof = finding.witness
    return doc.Finding(
        rule=finding.rule,
        level=_TITLES[finding.verdict][0],
        message=f"{doc.code(finding.subject)} {doc.literal(finding.message)}",
        note=_same_change(finding.kind, others),
        fix=doc.prose(finding.hint),
        place=place,
        evidence=doc.Evidence(proof.problem, proof.value, has_value=True) if witness and proof is not None else None,
    )


def _grouped(found: Sequence[ContractFinding]) -> Iterator[tuple[ContractFinding, list[str]]]:
    """Yield each finding; several with the same change are one, with the names of the other entries."""
    groups: dict[object, list[ContractFinding]] = {}
    for finding in found:
        groups.setdefault((finding.rule, finding.kind, finding.message, finding.hint), []).append(finding)
    for group in groups.values():
        if len(group) < _MIN_GROUP or group[0].kind == "server":
            yield from ((finding, []) for finding in group)
        else:
            yield group[0], [finding.name for finding in group[1:]]


def _same_change(kind: str, others: Sequence[str]) -> str:
    if not others:
        return ""
    more = ", ..." if len(others) > _MAX_NAMES else ""
    count = doc.plural(len(others), f"other {kind}")
    return f"The same change in {count}: {', '.join(map(doc.code, others[:_MAX_NAMES]))}{more}"


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

    def __call__(self, finding: ContractFinding) -> doc.Place:
        """Return the place of a finding, as deep as its pointer leads; the document itself for a lost entry."""
        entry = self._entry(finding.kind, finding.name)
        pointer = existing(self._document, entry + finding.pointer if entry else "")
        return doc.Place(str(self._path), pointer, self._located.line(pointer))

    def of_tool(self, name: str, pointer: str) -> doc.Place:
        """Return the place of a JSON Pointer in a tool."""
        entry = self._entry("tool", name)
        whole = entry + pointer if entry else ""
        return doc.Place(str(self._path), whole, self._located.line(whole))

    def _entry(self, kind: str, name: str) -> str:
        """Return the pointer to an entry; empty if there is none."""
        for member, listing in LISTINGS.items():
            entries: Sequence[Mapping[str, Any]] = self._document.get(member, ()) if listing.kind == kind else ()
            for index, entry in enumerate(entries):
                if entry.get(listing.key) == name:
                    return join("", member, index)
        return ""


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
