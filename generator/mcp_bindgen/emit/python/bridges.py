"""Modules of conversions between adjacent revisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mcp_bindgen.bridging.functions import user_function
from mcp_bindgen.conversion.differences import Kind, Plan
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.edits import Apply, Cases, Check, Each, Edit, Members, Move, Named, Sequence, Test, Try
from mcp_bindgen.conversion.prefilters import prefilter
from mcp_bindgen.conversion.rules import Item, Place, Rule
from mcp_bindgen.ir.model import Array, Map, Scalar, Type
from mcp_bindgen.ir.naming import numbered
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import JSON_TYPES
from mcp_bindgen.spec.pointer import join

from ..emitter import Options
from ..header import header
from . import naming
from .annotations import CHECKED, annotation
from .environment import quoted, render
from .style import style_files
from .types import limits

_NAMES = (
    "Boolean, Conversion, Field, Integer, Item, Move, Number, Ruling, Step, attempt, cases, check, has, items, keep, "
    "later, members, of_kind, refuse, rule, rules, sequence, tagged, user_function, values"
)
_RULES = "mcp_bindgen.bridging.rules"


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
    code = _Code(plan)
    rows = [(part, list(code.conversions(part))) for part in ("params", "results")]
    edits, remarks = list(code.edits()), list(code.remarks())
    return render(
        "bridges/step.py.jinja",
        header=header(f"from MCP {source.revision} and MCP {target.revision}. Do not edit.", command),
        plan=plan,
        adapted=[quoted(name) for name in plan.adapted],
        row=_tuple,
        names=_NAMES,
        rulings=[(name, *ruling) for ruling, name in code.rulings.items()],
        edits=edits,
        conversions=[(part, found) for part, found in rows if found],
        field_collisions=list(_field_collisions(plan)),
        remarks=remarks,
        implementation=code.name(Named("Implementation", "Implementation")),
    )


class _Code:
    """Expressions of one module.

    Attributes:
        rulings: Path, reason and capability -> the name of the constant.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rulings: dict[tuple[str, str, str], str] = {}
        self._names: dict[Named, str] = {}
        for key in plan.named:
            name, taken = f"_{naming.snake(key.source)}", {*self._names.values()}
            self._names[key] = numbered(f"{name}_", taken.__contains__) if name in taken else name
        self._done: set[Named] = set()

    def conversions(self, part: str) -> Iterator[tuple[str, str, tuple[bytes, ...], bool]]:
        for payload in self.plan.payloads:
            if payload.part == part and payload.edit is not None:
                self._done.update(self.plan.named)
                edit = self.expression(payload.edit)
                self._done.clear()
                reads_params = any(isinstance(one, Apply) and one.rule.is_users for one in self.plan.reached(payload))
                yield payload.method, edit, prefilter(payload.edit, self.plan.named), reads_params

    def name(self, key: Named) -> str | None:
        """Return the name of the conversion of a definition, or None if that stays."""
        return self._names.get(key)

    def edits(self) -> Iterator[tuple[str, str]]:
        for key, edit in self.plan.named.items():
            yield self._names[key], self.expression(edit)
            self._done.add(key)

    def expression(self, edit: Edit) -> str:
        match edit:
            case Named():
                name = self._names[edit]
                return name if edit in self._done else f"later(lambda: {name})"
            case Apply():
                return self.applied(edit)
            case Try(first, otherwise):
                return f"attempt({self.expression(first)}, {self.expression(otherwise)})"
            case Check(types, otherwise):
                return f"check({' | '.join(map(_checked, types))}, {self.expression(otherwise)})"
            case Sequence(edits):
                return f"sequence({', '.join(map(self.expression, edits))})"
            case Each(inner, values):
                return f"{'values' if values else 'items'}({self.expression(inner)})"
            case Cases(pairs, rest):
                found = [
                    f"({_test(case.test)}, {self.expression(case.edit) if case.edit else 'keep'})" for case in pairs
                ]
                return f"cases({', '.join([*found, *([f'rest={self.expression(rest)}'] if rest else [])])})"
            case Members():
                return self.members(edit)

    def members(self, edit: Members) -> str:
        parts = [
            _dict(None, {name: self.expression(one) for name, one in edit.edits}),
            _dict("fill", {fill.member: repr(fill.value) for fill in edit.fills if fill.replaces}),
            _dict("default", {fill.member: repr(fill.value) for fill in edit.fills if not fill.replaces}),
            f"drop={_tuple(map(quoted, edit.drops))}" if edit.drops else "",
            f"lenient={_tuple(map(quoted, edit.lenient))}" if edit.lenient else "",
            f"move={_tuple(map(self.move, edit.moves))}" if edit.moves else "",
            f"only={_tuple(map(quoted, edit.only))}" if edit.only else "",
            _dict("want", {name: self.ruling(one) for name, one in edit.wants}),
        ]
        return f"members({', '.join(filter(None, parts))})"

    def move(self, move: Move) -> str:
        rule = move.applied.rule
        edit = self.expression(move.edit) if move.edit is not None else "keep"
        more = [", keeps=True"] * move.keeps + [f", leave={rule.leave!r}"] * bool(rule.leave)
        return f"Move({_place(rule.take)}, {_place(rule.put)}, {self.ruling(move.applied)}, {edit}{''.join(more)})"

    def applied(self, edit: Apply) -> str:
        if edit.rule.action == "refuse":
            return f"refuse({self.ruling(edit)})"
        name = _function(edit.rule, self.plan)
        if edit.rule.is_users:
            step = f"{quoted(self.plan.source.revision)}, {quoted(self.plan.target.revision)}"
            return f"rule(user_function({quoted(name)}), {self.ruling(edit)}, {step})"
        return f"rule(rules.{name}, {self.ruling(edit)})"

    def ruling(self, edit: Apply) -> str:
        """Return the constant of the text of a rule for a difference."""
        path = edit.path
        key = (".".join(path), edit.rule.because, edit.rule.capability)
        if key not in self.rulings:
            name = "_" + "_".join(naming.constant(part) or "ITEMS" for part in path)
            taken = {*self.rulings.values()}
            self.rulings[key] = numbered(f"{name}_", taken.__contains__) if name in taken else name
        return self.rulings[key]

    def remarks(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the losses and refusals of each method."""
        found: dict[str, list[str]] = {}
        for payload in self.plan.payloads:
            for one in self.plan.reached(payload):
                if isinstance(one, Apply) and one.rule.may_lose:
                    found.setdefault(payload.method, []).append(f"({quoted(payload.part)}, {self.ruling(one)})")
        yield from sorted(found.items())


def _function(rule: Rule, plan: Plan) -> str:
    """Return the name of the function of a rule; raises `BadInput` unless it can be imported and called."""
    name = str(rule.value)
    try:
        user_function(name if rule.is_users else f"{_RULES}:{name}")
    except ImportError as error:
        problem, _, fix = str(error).rpartition("; ")
        raise BadInput(problem, pointer=join("", plan.name, *rule.path), fix=fix) from None
    return name


def _place(place: Place) -> str:
    items = (f"Item({step.members!r})" if isinstance(step, Item) else quoted(step) for step in place)
    return _tuple(items)


def _field_collisions(plan: Plan) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield the members with colliding names, by part and method."""
    found: dict[str, list[tuple[str, list[str]]]] = {"params": [], "results": []}
    for payload in plan.payloads:
        conflicts = (one for one in payload.differences if one.kind is Kind.TYPE_CONFLICT and one.rule is None)
        if names := sorted({one.path[-1] for one in conflicts}):
            found[payload.part].append((payload.method, [*map(quoted, names)]))
    yield from ((part, rows) for part, rows in found.items() if rows)


def _dict(name: str | None, entries: Mapping[str, str]) -> str:
    if not entries:
        return ""
    text = "{" + ", ".join(f"{quoted(key)}: {value}" for key, value in entries.items()) + "}"
    return f"{name}={text}" if name else text


def _tuple(expressions: Iterable[str]) -> str:
    found = list(expressions)
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


def _checked(type: Type) -> str:
    """Return the expression of a scalar, of constants, or of an array or an object with any values."""
    found = limits(type) if isinstance(type, Scalar | Array) else []
    base = "dict" if isinstance(type, Map) else "list" if isinstance(type, Array) else annotation(type, CHECKED)
    return f"Annotated[{base}, Field({', '.join(found)})]" if found else base


def _test(test: Test) -> str:
    if test.member and test.value is not None:
        return f"tagged({quoted(test.member)}, {test.value!r})"
    if test.member:
        lacks = f", lacks={_tuple(map(quoted, test.lacks))}" if test.lacks else ""
        return f"has({quoted(test.member)}{lacks})"
    return f"of_kind({'type(None)' if test.kind == 'null' else JSON_TYPES[test.kind].__name__})"
