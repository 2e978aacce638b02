"""State which arguments calls take by position, and which messages only the runtime sends."""

from __future__ import annotations

from dataclasses import replace

from ..model import Method, Object, Ref
from .draft import Draft


def shape_calls(draft: Draft) -> Draft:
    """Fill in `arguments` and `lifecycle` of the methods, as `semantics.toml` states them."""
    return replace(draft, methods={name: _shaped(method, draft) for name, method in draft.methods.items()})


def _shaped(method: Method, draft: Draft) -> Method:
    facts, type = draft.facts_about(method), method.params
    while isinstance(type, Ref):
        type = draft.definitions[type.name].type
    stated = facts["arguments"].get(method.name, ()) if isinstance(type, Object) else ()
    return replace(
        method,
        arguments=tuple(wire for wire in stated if isinstance(type, Object) and type.field(wire)),
        lifecycle=facts["lifecycle"].get(method.name, ""),
    )
