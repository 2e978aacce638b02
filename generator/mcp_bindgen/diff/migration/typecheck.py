"""What a type checker knows of the expressions in somebody's code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from mypy import build, nodes, types
from mypy.modulefinder import BuildSource
from mypy.options import Options
from mypy.plugin import AnalyzeTypeContext, ClassDefContext, Plugin
from platformdirs import user_cache_path

from mcp_bindgen.protocol.model import Array, Const, Map, Ref, Scalar, Type, Union

_SCALARS = {"str": Scalar("string"), "int": Scalar("integer"), "float": Scalar("number"), "bool": Scalar("boolean")}


class Span(NamedTuple):
    """The place of an expression."""

    line: int
    column: int
    end_line: int | None
    end_column: int | None


class TypedCode:
    """Expressions with their types.

    An expression of mypy does not say in which file it stands, so no two files may have lines of the same number.

    Args:
        package: The import name of the bindings.
        sources: The bindings and the code.

    Raises:
        CompileError: There is something that mypy cannot go past.
    """

    def __init__(self, package: str, sources: Sequence[BuildSource]) -> None:
        options = Options()
        options.export_types = options.preserve_asts = options.check_untyped_defs = True
        options.allow_redefinition = options.ignore_missing_imports = True
        options.native_parser = False  # the other one counts columns otherwise than Python
        options.follow_imports = "skip"  # what is not among the sources may be anything; the standard library is stubs
        options.cache_dir, options.sqlite_cache = str(user_cache_path("mcp-bindgen") / "mypy"), False
        self._package, recorder = package, _Recorder(options, package)
        with chdir(Path(build.default_data_dir()) / "typeshed"):  # it looks for modules in the current folder
            found = build.build(list(sources), options, extra_plugins=[recorder])
        self._classes, self._names = recorder.classes, recorder.names
        self._expressions: dict[Span, nodes.Expression] = {}
        self._types = {_span(one): types.get_proper_type(type) for one, type in found.types.items()}
        for expression in found.types:
            inner: nodes.Expression | None = expression
            while inner is not None:
                self._expressions[_span(inner)] = inner
                inner = inner.expr if isinstance(inner, nodes.MemberExpr) else None

    def refers_to(self, node: ast.expr) -> str | None:
        """The name in the bindings that an expression stands for, e.g. `types.Tool`; empty for the package itself."""
        expression = self._expressions.get(_span_of(node))
        known = self._names.get((node.lineno, node.col_offset, ast.unparse(node)), "")
        return self._name(expression.fullname if isinstance(expression, nodes.RefExpr) else known)

    def attribute(self, node: ast.Attribute) -> tuple[list[str], bool]:
        """The members of the bindings that an attribute may be, e.g. `types.Tool.title`, and whether it is no other."""
        expression = self._expressions.get(_span_of(node))
        if isinstance(expression, nodes.SuperExpr) and expression.info is not None:
            owners, sure = list(expression.info.mro[1:]), True
            found = next((one.names[node.attr].node for one in owners if node.attr in one.names), None)
            members = [found] if found is not None else []
        else:
            options = list(_alternatives(self._types.get(_span_of(node.value))))
            sure = not any(isinstance(one, types.AnyType) for one in options)
            symbols = [info.get(node.attr) for one in options if (info := _class(one)) is not None]
            members = [symbol.node for symbol in symbols if symbol is not None and symbol.node is not None]
        names = [self._name(one.fullname) for one in members]
        return [name for name in names if name is not None], sure

    def called(self, node: ast.Call) -> tuple[set[str], bool, bool]:
        """Return what a call may call of the bindings, whether that is sure, and whether a user's class is between."""
        names: set[str] = set()
        extended = False
        options = list(_alternatives(self._types.get(_span_of(node.func))))
        sure = not any(isinstance(one, types.AnyType) for one in options)
        for one in options:
            info = None if isinstance(one, types.Instance) else _class(one)
            if info is not None:
                name = self._extended(info)
                extended |= not info.fullname.startswith(self._package)
            else:
                definition = one.definition if isinstance(one, types.CallableType) else None
                name = self._name(definition.fullname) if definition is not None else None
            names |= {name} if name is not None else set()
        return names, sure and len(names) == 1, extended

    def callees(self, node: ast.Call) -> list[str]:
        """Return the full names of the functions of the project that a call may call."""
        options = _alternatives(self._types.get(_span_of(node.func)))
        found = [
            one.definition for one in options if isinstance(one, types.CallableType) and one.definition is not None
        ]
        return [one.fullname for one in found if not one.fullname.startswith(f"{self._package}.")]

    def type(self, node: ast.expr) -> Type | None:
        """The type of an expression as one of the protocol; `None` where it is not certain to be one."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            held = _union([self.type(one) for one in node.elts])
            return held and Array(held)
        return self._type(self._types.get(_span_of(node)))

    def extended(self, node: ast.ClassDef) -> str | None:
        """The class of the bindings that a class extends."""
        info = self._classes.get(node.lineno)
        return self._extended(info) if info is not None else None

    def signature(self, node: ast.ClassDef, function: str) -> tuple[Type | None, Type | None]:
        """Return what a method says that it takes first and gives."""
        symbol = self._classes[node.lineno].names.get(function)
        method = symbol.node.func if symbol and isinstance(symbol.node, nodes.Decorator) else symbol and symbol.node
        if not isinstance(method, nodes.FuncDef) or not isinstance(method.type, types.CallableType):
            return None, None
        taken, given = method.type.arg_types, types.get_proper_type(method.type.ret_type)
        if isinstance(given, types.Instance) and given.type.fullname in ("typing.Coroutine", "typing.Awaitable"):
            given = types.get_proper_type(given.args[-1])
        return self._type(taken[1]) if len(taken) > 2 else None, self._type(given)

    def _name(self, fullname: str) -> str | None:
        """Return what code calls something of the bindings."""
        if fullname == self._package:
            return ""
        if not fullname.startswith(f"{self._package}."):
            return None
        name = fullname.removeprefix(f"{self._package}.")
        return name.removeprefix("client.").removeprefix("server.")

    def _extended(self, info: nodes.TypeInfo) -> str | None:
        return next(filter(None, (self._name(base.fullname) for base in info.mro)), None)

    def _type(self, type: types.Type | None) -> Type | None:
        match types.get_proper_type(type):
            case types.NoneType():
                return Const((None,))
            case types.LiteralType(value=str() | int() | float() as value):
                return Const((value,))
            case types.Instance(last_known_value=types.LiteralType() as literal):
                return self._type(literal)
            case types.UnionType(items=items):
                return _union([self._type(one) for one in items])
            case types.Instance(type=info, args=[*_, inner]) if info.fullname in ("builtins.list", "builtins.dict"):
                held = self._type(inner)
                return held and (Array(held) if info.name == "list" else Map(held))
            case types.Instance(type=info):
                module, _, name = (self._extended(info) or "").partition(".")
                return Ref(name) if module == "types" else _SCALARS.get(info.fullname.removeprefix("builtins."))
            case _:
                return None


class _Recorder(Plugin):
    """Records the names in annotations, and the classes; handlers without annotations take those of the bindings.

    Attributes:
        names: What the names in annotations stand for.
        classes: The classes, by their lines.
    """

    def __init__(self, options: Options, package: str) -> None:
        super().__init__(options)
        self.names: dict[tuple[int, int, str], str] = {}
        self.classes: dict[int, nodes.TypeInfo] = {}
        self._package, self._inside = package, False

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], types.Type] | None:
        """Record a name in an annotation."""
        if self._inside or not fullname.startswith(f"{self._package}."):
            return None

        def record(context: AnalyzeTypeContext) -> types.Type:
            self.names[context.type.line, context.type.column, context.type.name] = fullname
            self._inside = True
            try:
                return context.api.analyze_type(context.type)
            finally:
                self._inside = False

        return record

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None]:
        """Record a class that has a base."""

        def record(context: ClassDefContext) -> None:
            self.classes[context.cls.line] = context.cls.info
            for method in context.cls.defs.body:
                self._annotate(method.func if isinstance(method, nodes.Decorator) else method, context.cls.info)

        return record

    def _annotate(self, method: nodes.Statement, info: nodes.TypeInfo) -> None:
        """Give the parameters without annotations the types of those that a method overrides."""
        if not isinstance(method, nodes.FuncDef):
            return
        symbols = [base.names.get(method.name) for base in info.mro[1:] if base.fullname.startswith(self._package)]
        known = next((one.type for one in symbols if one is not None), None)
        if isinstance(known, types.CallableType) and len(known.arg_types) == len(method.arguments):
            unknown = types.AnyType(types.TypeOfAny.unannotated)
            taken = [unknown, *known.arg_types[1:]]  # `self` is of the class itself
            if isinstance(method.type, types.CallableType):
                pairs = zip(method.type.arg_types, taken, strict=True)
                method.type.arg_types = [other if isinstance(one, types.AnyType) else one for one, other in pairs]
            elif method.type is None:
                names: list[str | None] = [*method.arg_names]
                method.type = types.CallableType(taken, method.arg_kinds, names, unknown, known.fallback)


def _span(node: nodes.Context) -> Span:
    return Span(node.line, node.column, node.end_line, node.end_column)


def _span_of(node: ast.expr) -> Span:
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _alternatives(type: types.ProperType | None) -> Iterator[types.ProperType]:
    match type:
        case types.UnionType(items=items) | types.Overloaded(items=items):
            for item in items:
                yield from _alternatives(types.get_proper_type(item))
        case types.TypeVarType(upper_bound=bound):
            yield from _alternatives(types.get_proper_type(bound))
        case None:
            return
        case _:
            yield type


def _class(type: types.ProperType) -> nodes.TypeInfo | None:
    """The class of an object, or the class that it is."""
    match type:
        case types.Instance(type=info):
            return info
        case types.TypeType(item=item):
            return _class(item)
        case types.CallableType() if type.is_type_obj():
            return type.type_object()
        case _:
            return None


def _union(found: list[Type | None]) -> Type | None:
    known = [one for one in dict.fromkeys(found) if one is not None]
    return Union(tuple(known)) if known and None not in found else None
