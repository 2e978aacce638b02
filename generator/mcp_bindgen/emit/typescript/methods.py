"""Rows of the table of methods, and the handlers and calls of both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import OTHER_SIDE, Method, Ref, Sender, Type, Union

from . import names as naming
from .types import type_text


@dataclass(frozen=True)
class Stub:
    """A handler or a call.

    Attributes:
        name: Its name, e.g. `callTool`.
        method: The method.
        signatures: Parameters with the type of the result; overloaded if there are several.
        doc: The description.
    """

    name: str
    method: Method
    signatures: tuple[str, ...]
    doc: str


@dataclass(frozen=True)
class Methods:
    """The methods of a protocol in TypeScript.

    Attributes:
        protocol: The protocol.
        names: Definition -> name of its type.
    """

    protocol: Protocol
    names: Mapping[str, str]

    def rows(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the name of each method with the members of its row: name and expression."""
        for method in self.protocol.methods:
            yield method.name, [(member, text) for member, text in self._row(method) if text]

    def _row(self, method: Method) -> Iterator[tuple[str, str]]:
        yield "kind", json.dumps(method.kind)
        yield "senders", json.dumps(method.senders)
        yield "carrier", json.dumps(method.carrier)
        yield "params", self._validator(method.params)
        yield "paramsRequired", json.dumps(method.params_required)
        yield "result", self._answer(method.result)
        alternatives = self._alternatives(method)
        yield "alternatives", f"[{', '.join(map(self._answer, alternatives))}]" if alternatives else ""
        yield "optIn", json.dumps(method.opt_in) if method.opt_in else ""
        yield "capabilities", json.dumps(dict(method.capabilities)) if method.capabilities else ""
        yield "declares", self._declares(method)

    def handlers(self, side: Sender) -> list[Stub]:
        """Return the handlers of a side: of the methods that the other side sends."""
        found = [one for one in self.protocol.methods if one.senders != (side,) and not one.lifecycle]
        names = naming.handlers((method.definition, method.kind) for method in found)
        return [Stub(name, one, (self._handler(one),), one.handling) for name, one in zip(names, found, strict=True)]

    def calls(self, side: Sender) -> list[Stub]:
        """Return the calls of a side."""
        found = [
            one
            for one in self.protocol.methods
            if side in one.senders and not one.lifecycle and one.carrier == "message"
        ]
        names = naming.calls((method.definition, method.kind) for method in found)
        return [Stub(name, one, tuple(self._calls(one)), one.doc) for name, one in zip(names, found, strict=True)]

    def _handler(self, method: Method) -> str:
        params = "undefined" if method.params is None else self._type(method.params)
        params += "" if method.params is None or method.params_required else " | undefined"
        if method.kind == "notification":
            return f"(params: {params}): void | Promise<void>"
        types = [type for type in (method.result, *self._alternatives(method)) if type is not None]
        result = " | ".join(map(self._type, types))
        return f"(params: {params}, context: Context<Calls, Extra>): {result} | Promise<{result}>"

    def _calls(self, method: Method) -> Iterator[str]:
        params = "undefined" if method.params is None else f"Outgoing<{self._type(method.params)}>"
        mark = "" if self._needs_params(method) else "?"
        if method.kind == "notification":
            yield f"(params{mark}: {params}): Promise<void>"
            return
        end = "options?: CallOptions): Promise"
        result = self._type(method.result) if method.result is not None else "unknown"
        if method.opt_in and method.alternatives:
            asked, other = json.dumps(method.opt_in), " | ".join(map(self._type, method.alternatives))
            yield f"(params{mark}: {params} & {{ {naming.key(method.opt_in)}?: undefined }}, {end}<{result}>"
            yield f"(params: {params} & {{ {asked}: unknown }}, {end}<{other}>"
        else:
            yield f"(params{mark}: {params}, {end}<{result}>"

    def _needs_params(self, method: Method) -> bool:
        """Return True if a call must give params; the SDK adds the required members of `_meta`."""
        if method.params is None or not method.params_required:
            return False
        type = self.protocol.object_of(method.params)
        return type is None or any(field.required and field.wire != "_meta" for field in type.fields)

    def _alternatives(self, method: Method) -> list[Type]:
        return [*method.alternatives, *map(Ref, self.protocol.added_answers(method.name))]

    def _declares(self, method: Method) -> str:
        """Return the capability of the receiver that a handler of the method stands for."""
        if method.kind != "request":
            return ""
        if method.origin:
            return json.dumps({"path": ["extensions", method.origin], "flag": False})
        flags = {capability.name: capability.flag for capability in self.protocol.capabilities}
        for sender, capability in method.capabilities:
            owner, *path = capability.split(".")
            if owner == OTHER_SIDE[sender]:
                return json.dumps({"path": path, "flag": flags.get(capability, False)})
        return ""

    def _answer(self, type: Type | None) -> str:
        """Return a result with the values that its required members have in every result of its type."""
        if type is None:
            return ""
        fields = self.protocol.fields_of(type)
        constants = {field.wire: field.default for field in fields if field.required and field.default is not None}
        return f"{{ type: {self._validator(type)}, constants: {json.dumps(constants)} }}"

    def _type(self, type: Type) -> str:
        match type:
            case Ref(name):
                return f"types.{self.names[name]}"
            case Union(members):
                return " | ".join(map(self._type, members))
            case _:
                return type_text(type, self.names)

    def _validator(self, type: Type | None) -> str:
        match type:
            case None:
                return ""
            case Ref(name):
                return f"validators.{self.names[name]}"
            case _:
                raise AssertionError("params and results are definitions")
