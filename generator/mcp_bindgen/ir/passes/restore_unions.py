"""Restore unions of one member, which are published as that member, inlined."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec.keywords import method_of, without_prose
from mcp_bindgen.spec.references import reference

from .build_state import BuildState


def restore_unions(state: BuildState) -> BuildState:
    """Replace a definition that repeats a message's definition under a union's name by a reference to it."""
    unions = state.semantics["unions"]
    messages = {
        name: schema
        for name, schema in state.schemas.items()
        if name not in unions and name not in state.origins and method_of(schema)
    }
    schemas = dict(state.schemas)
    for union in unions:
        schema = schemas.get(union, {})
        same = [name for name, message in messages.items() if method_of(message) == method_of(schema)]
        same = [name for name in same if without_prose(messages[name]) == without_prose(schema)]
        if same:
            prose = {"description": schema["description"]} if "description" in schema else {}
            schemas[union] = {**prose, "anyOf": [{"$ref": reference(same[-1])}]}
    return replace(state, schemas=schemas)
