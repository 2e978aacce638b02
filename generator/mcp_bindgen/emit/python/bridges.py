"""Modules of conversions between adjacent revisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mcp_bindgen.bridging.functions import user_function
from mcp_bindgen.conversion.differences import Kind, Plan
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.edits import Apply, Edit, Named
from mcp_bindgen.conversion.prefilters import prefilter
from mcp_bindgen.conversion.rules import Rule
from mcp_bindgen.ir.model import Array, Map, Scalar, Type
from mcp_bindgen.ir.naming import numbered
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import JSON_TYPES, join

from ..emitter import Options
from ..header import header
from . import naming
from .annotations import CHECKED, annotation
from .environment import render, style_files
from .imports import use
from .types import limits

_bridging = partial(use, "mcp_bindgen.bridging.abi")
_RULES = "mcp_bindgen.bridging.rules"
_CHECKED = {**CHECKED, **{kind: _bridging(CHECKED[kind]) for kind in ("boolean", "integer", "number")}}


def module(plan: Plan) -> str:
    """Return the name of the module of a step."""
    return f"{naming.package(plan.source.revision)}_to_{naming.package(plan.target.revision)}"


def emit(model: Model, options: Options) -> dict[str, str]:
    """Return file name -> text: a module for each conversion from the revision of the model to an adjacent one."""
    files = style_files({f"{module(plan)}.py": _emit(plan, options.command) for plan in model.bridges})
    if options.joins_installed:
        return files
    top = header("from the schemas of all revisions. Do not edit.", options.command)
    revisions = [(name, naming.package(name), *facts) for name, *facts in options.revisions]
    initial = render("bridges/__init__.py.jinja", header=top, revisions=revisions)
    return {**files, "__init__.py": initial, "py.typed": f"{top}\n"}


def _emit(plan: Plan, command: str) -> str:
    source, target = plan.source, plan.target
    names = _names(plan)
    return render(
        "bridges/step.py.jinja",
        header=header(f"from MCP {source.revision} and MCP {target.revision}. Do not edit.", command),
        plan=plan,
        names=names,
        order=list(names),
        rulings=_Rulings(),
        conversions=[(part, found) for part in ("params", "results") if (found := list(_conversions(plan, part)))],
        field_collisions=list(_field_collisions(plan)),
        remarks=_remarks(plan),
        implementation=names.get(Named("Implementation", "Implementation")),
        bridging=_bridging,
        checked=_checked,
        function=partial(_function, plan),
        kinds={kind: type.__name__ for kind, type in JSON_TYPES.items()} | {"null": "type(None)"},
    )


def _names(plan: Plan) -> dict[Named, str]:
    """Return definition -> the name of its conversion, in the order of the module."""
    names: dict[Named, str] = {}
    for key in plan.named:
        names[key] = _numbered(f"_{naming.snake(key.source)}", names)
    return names


def _numbered(name: str, names: Mapping[Any, str]) -> str:
    """Return `name`, with a number if it is taken."""
    taken = {*names.values()}
    return numbered(f"{name}_", taken.__contains__) if name in taken else name


class _Rulings(dict[tuple[str, str, str], str]):
    """Path, reason and capability of a rule -> the constant of its text."""

    def of(self, edit: Apply) -> str:
        """Return the constant of the text of a rule for a difference."""
        key = (".".join(edit.path), edit.rule.because, edit.rule.capability)
        if key not in self:
            self[key] = _numbered("_" + "_".join(naming.constant(part) or "ITEMS" for part in edit.path), self)
        return self[key]


def _conversions(plan: Plan, part: str) -> Iterator[tuple[str, Edit, tuple[bytes, ...], bool]]:
    """Yield the method, the edit, the prefilter, and whether a rule reads the params, of each conversion."""
    for payload in plan.payloads:
        if payload.part == part and payload.edit is not None:
            reads_params = any(isinstance(one, Apply) and one.rule.is_users for one in plan.reached(payload))
            yield payload.method, payload.edit, prefilter(payload.edit, plan.named), reads_params


def _remarks(plan: Plan) -> dict[str, list[tuple[str, Apply]]]:
    """Return method -> its losses and refusals, each with the part of the message."""
    found: dict[str, list[tuple[str, Apply]]] = {}
    for payload in plan.payloads:
        for one in plan.reached(payload):
            if isinstance(one, Apply) and one.rule.may_lose:
                found.setdefault(payload.method, []).append((payload.part, one))
    return dict(sorted(found.items()))


def _function(plan: Plan, rule: Rule) -> str:
    """Return the name of the function of a rule; raises `BadInput` unless it can be imported and called."""
    name = str(rule.value)
    try:
        user_function(name if rule.is_users else f"{_RULES}:{name}")
    except ImportError as error:
        problem, _, fix = str(error).rpartition("; ")
        raise BadInput(problem, pointer=join("", plan.name, *rule.path), fix=fix) from None
    return name


def _field_collisions(plan: Plan) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield the members with colliding names, by part and method."""
    found: dict[str, list[tuple[str, list[str]]]] = {"params": [], "results": []}
    for payload in plan.payloads:
        conflicts = (one for one in payload.differences if one.kind is Kind.TYPE_CONFLICT and one.rule is None)
        if names := sorted({one.path[-1] for one in conflicts}):
            found[payload.part].append((payload.method, names))
    yield from ((part, rows) for part, rows in found.items() if rows)


def _checked(type: Type) -> str:
    """Return the expression of a scalar, of constants, or of an array or an object with any values."""
    found = limits(type) if isinstance(type, Scalar | Array) else []
    base = "dict" if isinstance(type, Map) else "list" if isinstance(type, Array) else annotation(type, _CHECKED)
    return f"{use('typing', 'Annotated')}[{base}, {_bridging('Field')}({', '.join(found)})]" if found else base
