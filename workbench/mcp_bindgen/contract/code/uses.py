"""Find the call sites of a code base that a change of a contract breaks, through its typed clients.

mypy checks the code twice, as `migrate` does: with the typed client of the old contract, where methods of broken
entries are marked, and with the client of the new one. An error of the second run only is a certain break. A marked
call without an error breaks for some values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mcp_bindgen.drift.changes import Verdict
from mcp_bindgen.ir import build
from mcp_bindgen.migrate.checker import Diagnostic, check
from mcp_bindgen.migrate.files import Module, parse, python_files
from mcp_bindgen.migrate.overlay import mark, with_marks
from mcp_bindgen.migrate.result import Place
from mcp_bindgen.report.document import Finding, Findings, Section, code, literal
from mcp_bindgen.report.document import Level as Severity
from mcp_bindgen.report.document import Place as FilePlace
from mcp_bindgen.spec import BadInput, Store

from ..comparison.compare import ContractComparison, ContractFinding
from ..model import Contract
from .client_module import ClientModule
from .python_contract import lower_contract
from .typed_client import client_files

_CALLED = re.compile(r"function [\w.]+\.(\w+)\.(\w+) is deprecated")
_ARGUMENT = re.compile(r"(?:argument|variable) (?P<name>[\w-]+)")

_SEEN_BY_CHECKER = frozenset({"field-removed-optional", "field-removed-required", "field-renamed"})
"""Rules about members of results, with uses that are errors of the type checker."""


@dataclass(frozen=True)
class BrokenUse:
    """Place in the code that a change breaks.

    Attributes:
        place: Place of the call, or of the use of its result.
        call: Class and method of the typed client; empty if the place is no call.
        is_certain: True if the type checker refuses it with the new client; else it depends on values.
        reason: The change, or the error of the type checker.
        rule: Rule of the finding; empty for an error of the type checker.
    """

    place: Place
    call: str
    is_certain: bool
    reason: str
    rule: str


def broken_uses(old: Contract, new: Contract, comparison: ContractComparison, root: Path) -> list[BrokenUse]:
    """Return the call sites below a folder that break, in the order of files and lines.

    Args:
        old: The contract of the typed client that the code uses.
        new: The contract to compare with.
        comparison: Their comparison.
        root: The folder of the code.

    Raises:
        BadInput: There is no typed client of the server, or mypy is not installed.
    """
    paths = list(python_files(root))
    clients = [one for one in map(_client, paths) if one is not None and _is_of(one.contract(), old)]
    if not clients:
        fix = "write one with: mcp-bindgen client --from SERVER --out FILE.py"
        raise BadInput("there is no typed client of this server", file=root, fix=fix)
    generated = {client.path for client in clients}
    found = ((path, parse(path, path.read_bytes())) for path in paths if path not in generated)
    modules = {path: module for path, module in found if isinstance(module, Module)}
    uses = {use for client in clients for use in _uses(client, old, new, comparison, root, modules)}
    return sorted(uses, key=lambda use: (use.place.file, use.place.line, use.place.column, use.reason))


def _client(path: Path) -> ClientModule | None:
    try:
        return ClientModule.read(path)
    except BadInput:
        return None


def _is_of(saved: Contract, old: Contract) -> bool:
    """Return whether a saved contract is of the same server as another one."""
    names = [(one.info or {}).get("name") for one in (saved, old)]
    if all(names):
        return names[0] == names[1]
    ours, theirs = ({tool.name for tool in one.tools} for one in (saved, old))
    return bool(ours & theirs)


def _uses(
    client: ClientModule,
    old: Contract,
    new: Contract,
    comparison: ContractComparison,
    root: Path,
    modules: Mapping[Path, Module],
) -> Iterator[BrokenUse]:
    """Yield the uses of a typed client of the old contract that break; `modules` are the files of the code."""
    names = lower_contract(old)
    stubs: dict[tuple[str, str], str] = {(one.kind, one.key): names.stub(one) for one in names.all_entries}
    broken: dict[str, list[ContractFinding]] = {}
    for finding in comparison.findings:
        if finding.verdict is Verdict.BREAKING and (stub := stubs.get((finding.kind, finding.name))):
            broken.setdefault(stub, []).append(finding)
    before, after = _checked(client, old, root, modules, marked=broken), _checked(client, new, root, modules)
    known = {(one.file, one.line, one.message) for one in before}
    errors = [one for one in after if (one.file, one.line, one.message) not in known]
    explained: set[Diagnostic] = set()
    for one in before:
        match = _CALLED.search(one.message) if one.code == "deprecated" else None
        if match is None or match[1] != client.class_name or match[2] not in broken:
            continue
        module = modules[one.file]
        call = _call_of(match[2], module.nodes.get((one.line, one.offset), ()))
        last = one.line if call is None else call.end_lineno or one.line
        own = [error for error in errors if error.file == one.file and one.line <= error.line <= last]
        explained.update(own)
        affecting = [finding for finding in broken[match[2]] if own or call is None or _may_affect(finding, call)]
        if affecting:
            place = module.tail(one.line, one.offset, match[2])
            reason = "; ".join(finding.sentence for finding in affecting)
            yield BrokenUse(place, ".".join(match.groups()), bool(own), reason, affecting[0].rule)
    for error in errors:
        if error not in explained and error.file in modules and error.code != "deprecated":
            place = modules[error.file].place(error.line, error.offset)
            yield BrokenUse(place, "", True, error.message, "")


def _checked(
    client: ClientModule, contract: Contract, root: Path, modules: Mapping[Path, Module], marked: Collection[str] = ()
) -> Sequence[Diagnostic]:
    """Return the errors in the code with the typed client of a contract, whose marked methods are deprecated."""
    protocol = build(Store().effective(client.revision))
    files = client_files(contract, protocol, client.class_name, client.path.name, client.source)
    text = files[client.path.name]
    if marked:
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == client.class_name:
                mark(node, marked, "deprecated('')")
        text = with_marks(tree)
    base = root if root.is_dir() else root.parent
    name = client.path.relative_to(base).as_posix().removeprefix("src/")
    return check({path: module.raw for path, module in modules.items()}, root, {name: text}).diagnostics


def _call_of(method: str, nodes: Sequence[ast.AST]) -> ast.Call | None:
    """Return the call of a method among nodes that start at one place."""
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == method), None)


def _may_affect(finding: ContractFinding, call: ast.Call) -> bool:
    """Return whether a finding concerns a call that the type checker accepts: a passed argument, or its result."""
    passed = [keyword.arg for keyword in call.keywords]
    for detail in finding.details:
        argument = _ARGUMENT.match(detail.place)
        if argument is None:
            if detail.rule not in _SEEN_BY_CHECKER:
                return True
            continue
        name = argument["name"].replace("-", "_")
        if None in passed or any(one is not None and one.rstrip("_") == name.rstrip("_") for one in passed):
            return True
    return not finding.details


def use_section(uses: Sequence[BrokenUse], root: Path) -> Section:
    """Return the uses as a section of a report, with a section for each file."""
    files = groupby(uses, key=lambda use: use.place.file)
    inner = [Section(literal(file), [Findings(list(map(_finding, found)))]) for file, found in files]
    return Section(f"Call sites in {literal(str(root))} that break: {len(uses) or 'none'}", inner)


def _finding(use: BrokenUse) -> Finding:
    effect = "breaks" if use.is_certain else "breaks for some values"
    return Finding(
        rule=use.rule or "type-error",
        level=Severity.ERROR if use.is_certain else Severity.WARNING,
        message=f"{code(use.call)} {effect}" if use.call else "breaks with the new client",
        note=literal(use.reason),
        place=FilePlace(use.place.file, line=use.place.line, column=use.place.column),
    )


def use_record(use: BrokenUse) -> dict[str, Any]:
    """Return a use as JSON."""
    facts = {"call": use.call or None, "certain": use.is_certain, "reason": use.reason, "rule": use.rule or None}
    return {**asdict(use.place), **facts}
