"""State which arguments calls take by position, and which messages only the runtime sends."""

from __future__ import annotations

from dataclasses import replace

from ..model import Method
from .draft import Draft


def shape_calls(draft: Draft) -> Draft:
    """Fill in `arguments` and `lifecycle` of the methods, as `semantics.toml` states them."""
    return replace(draft, methods={name: _shaped(method, draft) for name, method in draft.methods.items()})


def _shaped(method: Method, draft: Draft) -> Method:
    facts = draft.facts_about(method)
    return replace(
        method,
        arguments=tuple(
            wire for wire in facts["arguments"].get(method.name, ()) if draft.field_of(method.params, wire)
        ),
        lifecycle=facts["lifecycle"].get(method.name, ""),
    )
