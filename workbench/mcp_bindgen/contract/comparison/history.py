"""Compare the versions of servers one after the other, and report the verdict of each step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from mcp_bindgen.drift.callers import Callers
from mcp_bindgen.drift.changes import Change, Verdict
from mcp_bindgen.report.document import Block, Document, Paragraph, Section, Table, code, literal, plural, strong
from mcp_bindgen.spec import BadInput

from ..document import read_contract
from ..model import Contract
from .compare import ContractComparison, compare_contracts
from .report import finding_list, word
from .report import record as comparison_record

_DATE = r"\d{4}-\d\d-\d\d"
_SEMVER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
_LOOSE = r"\d+(?:\.\d+)*(?:[-.]?[A-Za-z][0-9A-Za-z.]*)?"
_STEM = re.compile(rf"(?:(?P<name>.+?)-)?v?(?P<version>(?:{_DATE}|{_SEMVER}|{_LOOSE})(?:\+[\w.-]+)?)", re.ASCII)
"""Name of a file without its suffix: `1.2.0`, `weather-1.2.0-rc.1`, `weather-2026-11-29`."""

_NUMBERS = re.compile(rf"{_DATE}|[\d.]*\d", re.ASCII)
_COUNTED = (Verdict.BREAKING, Verdict.UNPROVEN, Verdict.COMPATIBLE, Verdict.NOTATION)


@dataclass(frozen=True)
class Recorded:
    """Contract of one version of a server.

    Attributes:
        server: Name of the server.
        version: Its version.
        contract: Its contract.
    """

    server: str
    version: str
    contract: Contract


@dataclass(frozen=True)
class Step:
    """Changes from one version of a server to the next one.

    Attributes:
        old: The earlier version.
        new: The later version.
        comparison: The comparison of both.
    """

    old: str
    new: str
    comparison: ContractComparison

    @property
    def changes(self) -> Sequence[Change]:
        """The changes that count; another version of the server, which each step may have, is none."""
        return [one for one in self.comparison.changes if one.kind != "server" or not one.is_open]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """Verdicts on the changes; a server is judged if its callers may break."""
        return [one.verdict for one in self.changes if one.kind != "server" or not one.verdict.is_open]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        return max(self.verdicts, default=Verdict.SAME)

    @property
    def counts(self) -> dict[str, int]:
        """Verdict, or `texts`, `added`, `removed` -> number of entries; added and removed ones have a verdict, too."""
        rules = [(one.kind, fact.rule) for one in self.changes for fact in one.facts]
        ends = {end: sum(rule == f"{kind}-{end}" for kind, rule in rules) for end in ("added", "removed")}
        verdicts = {word(verdict): self.verdicts.count(verdict) for verdict in _COUNTED}
        return {**verdicts, "texts": len(self.comparison.texts), **ends}


@dataclass(frozen=True)
class History:
    """Versions of a server.

    Attributes:
        versions: The versions in order.
        steps: The changes to each later version.
    """

    versions: Sequence[Recorded]
    steps: Sequence[Step]


def recorded(folder: Path) -> tuple[list[Recorded], list[Path]]:
    """Return the contracts in the files `NAME-VERSION` or `VERSION` of a folder in order, and files without a version.

    Raises:
        BadInput: There is no such file, one cannot be read, or two have the same version.
    """
    found: dict[tuple[str, str], Path] = {}
    others: list[Path] = []
    for file in sorted(one for one in folder.iterdir() if one.suffix in (".json", ".yaml", ".yml")):
        if (match := _STEM.fullmatch(file.stem)) is None:
            others.append(file)
            continue
        key = match["name"] or folder.resolve().name, match["version"]
        if key in found:
            raise BadInput(f"{found[key].name} has the same version", file=file, fix="keep one of them")
        found[key] = file
    if not found:
        raise BadInput("no file has a version", file=folder, fix="name contracts VERSION.json or NAME-VERSION.json")
    keys = sorted(found, key=lambda key: (key[0], order(key[1])))
    return [Recorded(*key, read_contract(found[key])) for key in keys], others


def order(version: str) -> tuple[list[int], bool, list[tuple[bool, int, str]]]:
    """Return the sort key of a version of SemVer or a date; numbers compare as numbers, pre-releases come first."""
    plain = version.partition("+")[0]
    core = _NUMBERS.match(plain)
    numbers = core[0] if core else ""
    rest = re.findall(r"\d+|[A-Za-z]+", plain[len(numbers) :])
    before = [(not one.isdigit(), int(one) if one.isdigit() else 0, one) for one in rest]
    return [int(one) for one in re.split("[.-]", numbers) if one], not before, before


def histories(contracts: Iterable[Recorded], callers: Callers) -> list[History]:
    """Return a history for each server; the versions of each are in order, one after the other."""
    found: list[History] = []
    for _, group in groupby(contracts, key=lambda one: one.server):
        versions = list(group)
        steps = [
            Step(old.version, new.version, compare_contracts(old.contract, new.contract, callers))
            for old, new in pairwise(versions)
        ]
        found.append(History(versions, steps))
    return found


def document(found: Sequence[History], callers: Callers) -> Document:
    """Return the report: for each server a table of its versions, and the breaking changes of each step."""
    return Document("contract history", [_section(one, callers) for one in found])


def record(found: Sequence[History], callers: Callers) -> dict[str, Any]:
    """Return the report as JSON: every finding and changed text of each step."""
    return {"callers": callers.name, "servers": list(map(_record, found))}


def _record(history: History) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for one in history.steps:
        facts = {"verdict": word(one.verdict), "counts": one.counts}
        steps.append({"old": one.old, "new": one.new, **comparison_record(one.comparison), **facts})
    first = history.versions[0]
    left_out = {one.version: list(one.contract.left_out) for one in history.versions}
    return {"server": first.server, "first": first.version, "leftOut": left_out, "steps": steps}


def _section(history: History, callers: Callers) -> Section:
    columns = ("version", "verdict", *map(word, _COUNTED), "texts", "added", "removed")
    first = history.versions[0]
    rows = [[code(first.version), *["-"] * (len(columns) - 1)]]
    blocks: list[Block] = []
    for step in history.steps:
        shown = strong(word(step.verdict)) if not step.verdict.is_open else word(step.verdict)
        rows.append([code(step.new), shown, *map(str, step.counts.values())])
        broken = [one for one in step.comparison.findings if one.verdict is Verdict.BREAKING]
        if broken:
            title = f"{literal(step.old)} → {literal(step.new)}: {step.counts['breaking']} breaking"
            blocks.append(Section(title, [finding_list(broken, witness=True)]))
    bad = sum(step.verdict is Verdict.BREAKING for step in history.steps)
    title = f"{literal(first.server)}: {plural(len(history.versions), 'version')}, {bad or 'none'} breaking"
    about = f"{callers.title}. A new entry counts as compatible, a removed one as breaking."
    lost = {one.version: len(one.contract.left_out) for one in history.versions if one.contract.left_out}
    words = "left out: the counts of added and removed entries include them."
    notes = [
        Paragraph(f"{code(one)} has {plural(lost[one], 'invalid entry', 'invalid entries')}, {words}") for one in lost
    ]
    return Section(title, [Paragraph(literal(about)), Table(columns, rows), *notes, *blocks])
