"""The old bindings as stub modules, which a type checker reads in place of the real ones.

They say what expressions are and take any argument: what is given is judged afterwards, so it must not be inferred from
what is expected.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.protocol.model import Array, Const, Map, Ref, Scalar, Type, Union

from .bindings import RECEIVERS, SHORTCUTS, Bindings, Stub, Stubs

_ANY = "*args: _t.Any, **fields: _t.Any"
_HEAD = f"""
import builtins as _b, typing as _t
class _Model:
    def __init__(self, {_ANY}) -> None: ...
    def model_copy(self, {_ANY}) -> _t.Self: ...
    @classmethod
    def model_construct(cls, {_ANY}) -> _t.Self: ...
    model_validate = model_validate_json = model_validate_strings = model_construct
class _Endpoint:
    def __init__(self, {_ANY}) -> None: ...
    @classmethod
    def connect(cls, {_ANY}) -> _t.AsyncContextManager[_t.Self]: ...
    connected = connect
    def with_options(self, {_ANY}) -> _t.Self: ...
class _Method:
    name: _b.str
"""
_PACKAGE = """
from . import client as client, dispatcher as dispatcher, errors as errors, methods as methods, server as server
from . import types as types
from .client import Client as Client
from .server import Context as Context, Server as Server
"""
_SCALARS = {"string": "_b.str", "integer": "_b.int", "number": "_b.float", "boolean": "_b.bool", "null": "None"}


def stubs(bindings: Bindings) -> dict[str, str]:
    """The text of each module of a package, by its name; the empty name is the package itself."""
    methods = [f"{stub.short}: _Method" for stub in bindings.constants.values()]
    common = "from .types import _b, _t, _Endpoint, _Method\nfrom . import types\n"
    return {
        "": _PACKAGE,
        "types": "\n".join([_HEAD, *_types(bindings)]),
        "errors": "\n".join(f"{name}: int" for name in bindings.errors),
        "methods": "\n".join([common, *methods, "METHODS: _b.dict[_b.str, _Method]"]),
        "client": "\n".join([common, *_endpoint(bindings, "Client")]),
        "server": "\n".join([common, *_endpoint(bindings, "Context"), *_endpoint(bindings, "Server")]),
        "dispatcher": "",
    }


def _types(bindings: Bindings) -> Iterator[str]:
    for name, definition in bindings.protocol.definitions.items():
        if bindings.class_of(name) != name:
            yield f"{name}: _t.TypeAlias = {_annotation(definition.type, '')}"
            continue
        yield f"class {name}(_Model):"
        yield "    pass"
        yield from (f"    {one.name}: {_annotation(one.whole, '')}" for one in bindings.fields(name))


def _endpoint(bindings: Bindings, owner: str) -> Iterator[str]:
    yield f"class {owner}(_Endpoint):"
    yield "    pass"
    for stub in _own(bindings.calls, owner):
        yield f"    async def {stub.short}(self, {_ANY}) -> {_annotation(stub.method.result)}: ..."
    for stub in _own(bindings.walks, owner):
        yield f"    def {stub.short}(self, {_ANY}) -> _t.AsyncIterator[{_annotation(stub.item)}]: ..."
    for stub in _own(bindings.handlers, owner):
        params = f"params: {_annotation(stub.method.params)}, " if stub.method.params is not None else ""
        context = "Context" if RECEIVERS[owner] == "server" else "_t.Any"
        yield f"    def {stub.short}(self, {params}ctx: {context}) -> _t.Any: ..."
    if owner == "Context":
        yield from (f"    async def {name}(self, {_ANY}) -> _t.Any: ..." for name in (*SHORTCUTS.values(), "ask_by"))
        questions = bindings.questions.items()
        asked = [(f"types.{params}", _annotation(stub.method.result)) for params, stub in questions]
        for params, result in (*asked, ("_t.Any", "_t.Any"), ("_t.Any", "_t.Any")):  # overloads are two at least
            yield f"    @_t.overload\n    async def ask_params(self, key: _t.Any, params: {params}) -> {result}: ..."


def _own(stubs: Stubs, owner: str) -> list[Stub]:
    return [stub for stub in stubs.values() if stub.owner == owner]


def _annotation(type: Type | None, prefix: str = "types.") -> str:
    """A type as an annotation."""
    match type:
        case None:
            return "None"
        case Scalar(kind):
            return _SCALARS[kind]
        case Const(values):
            return " | ".join("None" if value is None else f"_t.Literal[{value!r}]" for value in values)
        case Array(items):
            return f"_b.list[{_annotation(items, prefix)}]"
        case Map(values):
            return f"_b.dict[_b.str, {_annotation(values, prefix)}]"
        case Ref(name):
            return prefix + name
        case Union(members):
            return f"_t.Union[{', '.join(_annotation(member, prefix) for member in members)}]"
        case _:
            return "_t.Any"
