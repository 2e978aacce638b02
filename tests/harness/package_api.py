"""Public API of a generated package, read from its source code alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.harness.commands import ROOT

View = frozenset[tuple[Any, ...]]
"""A type as the set of its alternatives."""

NONE: View = frozenset({("null",)})
SCALARS = {
    "str": ["string"],
    "int": ["integer"],
    "Integer": ["integer"],
    "float": ["number"],
    "Number": ["number"],
    "bool": ["boolean"],
    "Boolean": ["boolean"],
    "None": ["null"],
}


@dataclass
class Parameter:
    """A field of a class or a parameter of a call."""

    annotation: ast.expr
    default: str | None
    position: int | None = None

    @property
    def needed(self) -> bool:
        """True if a value is required."""
        return self.default is None


@dataclass
class Stub:
    """A call or a handler."""

    parameters: dict[str, Parameter]
    returns: ast.expr
    method: str = ""

    @property
    def whole(self) -> bool:
        """True if it takes its params as a single argument."""
        return list(self.parameters) == ["params"]


@dataclass
class Offer:
    """API of one package."""

    classes: dict[str, dict[str, Parameter]] = field(default_factory=dict[str, dict[str, Parameter]])
    open: set[str] = field(default_factory=set[str])
    aliases: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    calls: dict[str, Stub] = field(default_factory=dict[str, Stub])
    walks: dict[str, Stub] = field(default_factory=dict[str, Stub])
    handlers: dict[str, Stub] = field(default_factory=dict[str, Stub])
    questions: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    methods: dict[str, dict[str, ast.expr]] = field(default_factory=dict[str, dict[str, ast.expr]])
    errors: dict[str, str] = field(default_factory=dict[str, str])

    def asked(self) -> dict[str, ast.expr]:
        """Return the classes of requests that `Context.ask_params` distinguishes, with the types of their responses."""
        own = {name: name for name in (*self.classes, *self.aliases)}
        found = [(self.named(name, own, ()), answer) for name, answer in self.questions.items()]
        return {str(name): answer for view, answer in found for _, name in view}

    def view(self, node: ast.expr | None, rename: dict[str, str], trail: tuple[str, ...] = ()) -> View:
        """Return the alternatives of a type expression; `rename` maps the names of classes."""
        match node:
            case None | ast.Constant(value=None):
                return NONE
            case ast.Constant(value=str(text)):
                return self.view(ast.parse(text, mode="eval").body, rename, trail)
            case ast.BinOp(left=left, right=right):
                return self.view(left, rename, trail) | self.view(right, rename, trail)
            case ast.Attribute(value=ast.Name(id="types"), attr=name):
                return self.named(name, rename, trail)
            case ast.Name(id=name) if name in SCALARS and name not in self.aliases and name not in self.classes:
                return frozenset({(kind, frozenset()) if kind != "null" else ("null",) for kind in SCALARS[name]})
            case ast.Name(id="Json"):
                return frozenset({("any",)})
            case ast.Name(id=name):
                return self.named(name, rename, trail)
            case ast.Subscript(value=base, slice=inner):
                return self.generic(ast.unparse(base).removeprefix("typing.").lstrip("_"), inner, rename, trail)
            case _:
                raise AssertionError(ast.unparse(node))

    def named(self, name: str, rename: dict[str, str], trail: tuple[str, ...]) -> View:
        if name in self.aliases and name not in trail:
            return self.view(self.aliases[name], rename, (*trail, name))
        return frozenset({("class", rename.get(name, f"old {name}"))})

    def generic(self, base: str, inner: ast.expr, rename: dict[str, str], trail: tuple[str, ...]) -> View:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        match base:
            case "Literal":
                return frozenset(("literal", ast.literal_eval(part)) for part in parts)
            case "list":
                return frozenset({("list", self.view(inner, rename, trail), frozenset())})
            case "dict":
                return frozenset({("dict", self.view(parts[1], rename, trail))})
            case "Mapping":
                return frozenset({("mapping",)})
            case "Annotated":
                limits = frozenset(
                    (keyword.arg, ast.unparse(keyword.value))
                    for part in parts[1:]
                    if isinstance(part, ast.Call)
                    for keyword in part.keywords
                    if keyword.arg not in ("discriminator", "alias", "deprecated")
                )
                plain = self.view(parts[0], rename, trail)
                return frozenset((*atom[:-1], limits) if len(atom) > 1 and limits else atom for atom in plain)
            case "Returns" | "Nullable" | "AsyncIterator":
                return self.view(inner, rename, trail)
            case "Optional":
                return self.view(inner, rename, trail) | NONE
            case "Union":
                return frozenset(atom for part in parts for atom in self.view(part, rename, trail))
            case _:
                raise AssertionError(base)


def fits(view: View, into: View) -> bool:
    """Return True if each alternative of `view` fits an alternative of `into`."""
    return all(any(_fits(one, other) for other in into) for one in view)


def _fits(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if one == other:
        return True
    match one, other:
        case ("list", items, *_), ("any",):
            return fits(items, frozenset({("any",)}))
        case ("dict", values), ("any",):
            return fits(values, frozenset({("any",)}))
        case (kind, *_), ("any",):
            return kind not in ("class", "mapping")
        case ("literal", value), (kind, limits):
            kinds = {str: ["string"], bool: ["boolean"], int: ["integer", "number"]}
            return kind in kinds[type(value)] and not limits
        case ("list", items, limits), ("list", others, more):
            return more <= limits and fits(items, others)
        case ("dict", values), ("dict", others):
            return fits(values, others)
        case ("dict", _), ("mapping",):
            return True
        case ("integer", limits), ("number", more):
            return bool(more <= limits)
        case (kind, limits), (same, more) if kind == same and kind in ("string", "integer", "number", "boolean"):
            return bool(more <= limits)
        case _:
            return False


@cache
def offer(revision: str) -> Offer:
    """Return the API of this project's package of a revision."""
    folder = ROOT / "generated" / "mcp_bindgen" / f"v{revision.replace('-', '_')}"
    found = Offer()
    for node in (*_parse(folder / "types.py").body, *_parse(folder / "envelopes.py").body):
        _type(node, found)
    for name in ("client", "server"):
        for node in _parse(folder / f"{name}.py").body:
            if isinstance(node, ast.ClassDef):
                _class(node, found)
    for node in _parse(folder / "errors.py").body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found.errors[node.target.id] = ast.unparse(node.value)
    for node in _parse(folder / "methods.py").body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=ast.Name(id=kind)) as made) if kind in (
                "RequestMethod",
                "Notification",
            ):
                found.methods[name] = {str(keyword.arg): keyword.value for keyword in made.keywords}
            case _:
                pass
    return found


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _type(node: ast.stmt, found: Offer) -> None:
    match node:
        case ast.ClassDef(name=name, body=body):
            found.classes[name] = {
                one.target.id: Parameter(one.annotation, ast.unparse(one.value) if one.value is not None else None)
                for one in body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            }
            made = (inner for one in body if isinstance(one, ast.If) for inner in one.body)  # for type checkers
            if any(isinstance(one, ast.FunctionDef) and one.args.kwarg is not None for one in made):
                found.open.add(name)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="TypeAliasType"), args=[_, type])):
            found.aliases[name] = type
        case ast.AnnAssign(target=ast.Name(id=name), value=type) if type is not None:
            found.aliases[name] = type
        case ast.If(orelse=other):
            for one in other:
                _type(one, found)
        case _:
            pass


def _class(node: ast.ClassDef, found: Offer) -> None:
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            assert one.returns is not None
            stub = _stub(one)
            key = f"{node.name}.{one.name}"
            if one.name == "ask_params":
                asked = stub.parameters["params"].annotation
                if ast.unparse(asked) != "Any":
                    found.questions[ast.unparse(asked).removeprefix("types.")] = one.returns
            elif isinstance(one, ast.FunctionDef):
                found.handlers[key] = stub
            elif "AsyncIterator" in ast.unparse(one.returns):
                found.walks[key] = stub
            else:
                found.calls[key] = stub


def _stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Stub:
    assert node.returns is not None
    parameters: dict[str, Parameter] = {}
    plain = node.args.args[1:]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults)) + list(node.args.defaults)
    for index, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        assert argument.annotation is not None
        value = ast.unparse(default) if default is not None else None
        parameters[argument.arg] = Parameter(argument.annotation, value, index)
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        assert argument.annotation is not None
        value = ast.unparse(default) if default is not None else None
        parameters[argument.arg] = Parameter(argument.annotation, value)
    uses = [
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "methods"
    ]
    return Stub(parameters, node.returns, uses[0] if uses else "")
