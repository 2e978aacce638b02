"""Reads annotations: says what a value is that is annotated so."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mcp_bindgen.protocol.model import Array, Free, Map, Scalar

from .values import NOTHING, Class, Data, Function, Pending, Value, either

if TYPE_CHECKING:
    from .expressions import Expressions

_LISTS = frozenset(
    {
        "list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "tuple", "Tuple", "set",
        "Set", "frozenset", "FrozenSet", "deque", "Generator",
    }
)  # fmt: skip
_MAPS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict"})
_SAME = frozenset({"Annotated", "ClassVar", "Final", "Optional", "Required", "NotRequired", "ReadOnly", "InitVar"})
_PENDING = frozenset(
    {
        "Awaitable", "AsyncIterator", "AsyncIterable", "AsyncGenerator", "AsyncContextManager", "ContextManager",
        "AbstractAsyncContextManager", "AbstractContextManager",
    }
)  # fmt: skip
_SCALARS: dict[str, Value] = {
    "str": Data(Scalar("string")),
    "int": Data(Scalar("integer")),
    "float": Data(Scalar("number")),
    "bool": Data(Scalar("boolean")),
    "dict": Data(Map(Free())),
}
ITERATORS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
"""What an asynchronous function gives at once when it yields."""


def annotated(node: ast.expr, reader: Expressions) -> Value | None:
    """What a value is that is annotated with `node`; the names in there are noted."""
    match node:
        case ast.Constant(value=str(text)):
            quoted = _quoted(node, text)
            return annotated(quoted, reader) if quoted is not None else None
        case ast.Constant(value=None):
            return NOTHING
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return either([annotated(left, reader), annotated(right, reader)])
        case ast.Subscript(value=base, slice=inner):
            reader.value(base)
            return _generic(last_name(base), inner.elts if isinstance(inner, ast.Tuple) else [inner], reader)
        case ast.Name(id=name) if name in _SCALARS and reader.scope.lookup(name) is None:
            return _SCALARS[name]
        case ast.Name(id="Self") if reader.inside is not None:
            return reader.bindings.instance(reader.inside)
        case ast.List(elts=parts):
            for part in parts:
                annotated(part, reader)
            return None
        case _:
            found = reader.value(node)
            return reader.bindings.instance(found) if isinstance(found, Class) else None


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=base):
            return last_name(base)
        case _:
            return ""


def _generic(name: str, parameters: list[ast.expr], reader: Expressions) -> Value | None:
    if name == "Literal":
        return None
    if name == "Annotated":
        for part in parameters[1:]:
            reader.value(part)
        parameters = parameters[:1]
    found = [annotated(part, reader) for part in parameters]
    first, last = (found[0], found[-1]) if found else (None, None)
    match first:
        case Data(type, sure) if name in _LISTS:
            return Data(Array(type), sure)
        case _ if name in _SAME:
            return first
        case _ if name == "Union":
            return either(found)
        case _ if name == "Callable":
            return Function(last)
        case _ if name == "Coroutine":
            return Pending(last)
        case _ if name in _PENDING:
            return Pending(first)
        case _:
            pass
    if name in _MAPS and len(found) == 2 and isinstance(last, Data):
        return Data(Map(last.type), last.sure)
    if name in ("type", "Type") and parameters:
        kind = reader.value(parameters[0])
        return kind if isinstance(kind, Class) else None
    return None


def _quoted(node: ast.Constant, text: str) -> ast.expr | None:
    """The expression in a quoted annotation, at the place where it stands."""
    try:
        found = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    for inner in ast.walk(found):
        if isinstance(inner, ast.expr | ast.keyword) and inner.lineno == 1:
            inner.col_offset += node.col_offset + 1
            if inner.end_col_offset is not None:
                inner.end_col_offset += node.col_offset + 1
    ast.increment_lineno(found, node.lineno - 1)
    return found
