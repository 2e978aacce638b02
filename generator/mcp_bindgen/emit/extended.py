"""A protocol as packages that hold a revision together with its extensions."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Definition, Object, Ref, Type
from mcp_bindgen.ir.naming import free


def extended(protocol: Protocol) -> Protocol:
    """Return a protocol whose params and results are definitions, with the members that its extensions add to them."""
    definitions = dict(protocol.definitions)

    def named(type: Type | None, name: str) -> Type | None:
        if type is None or isinstance(type, Ref):
            return type
        name = free(name, definitions)
        definitions[name] = Definition(name, type)
        return Ref(name)

    methods = tuple(
        replace(
            method,
            params=named(method.params, f"{method.definition}Params"),
            result=named(method.result, f"{method.definition}Result"),
        )
        for method in protocol.methods
    )
    for extension in protocol.extensions:
        for core, addition in extension.extends:
            known, more = definitions[core].type, definitions[addition].type
            assert isinstance(known, Object)
            assert isinstance(more, Object)
            fields = sorted((*known.fields, *more.fields), key=lambda field: field.wire)
            definitions[core] = replace(definitions[core], type=replace(known, fields=tuple(fields)))
    return replace(protocol, definitions=dict(sorted(definitions.items())), methods=methods)
