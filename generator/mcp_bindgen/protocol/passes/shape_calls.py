"""Say which arguments calls take by position, and which messages only the runtime sends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..calls import argument_fields, may_omit
from ..model import Field, Method, Object, Ref
from .draft import Draft


def shape_calls(draft: Draft) -> Draft:
    """Fill in `arguments` and `lifecycle` of the methods.

    Where `semantics.toml` states no arguments, the only one that must be given goes by position.
    """
    return replace(draft, methods={name: _shaped(method, draft) for name, method in draft.methods.items()})


def _shaped(method: Method, draft: Draft) -> Method:
    facts = draft.facts_about(method)
    fields = {field.wire: field for field in _fields(method, draft)}
    stated = [fields[wire] for wire in facts["arguments"].get(method.name, ()) if wire in fields]
    required = [field for field in fields.values() if not may_omit(field)]
    chosen = stated or (required if len(required) == 1 else [])
    return replace(
        method,
        arguments=tuple(field.wire for field in _in_order(chosen)),
        lifecycle=facts["lifecycle"].get(method.name, ""),
    )


def _fields(method: Method, draft: Draft) -> Iterable[Field]:
    type = method.params
    while isinstance(type, Ref):
        type = draft.definitions[type.name].type
    return argument_fields(type) if isinstance(type, Object) else ()


def _in_order(fields: Iterable[Field]) -> Iterator[Field]:
    """Cut `fields` where Python does not allow more: what must be given cannot stand behind what may be left out."""
    gap = False
    for field in fields:
        gap = gap or may_omit(field)
        if gap and not may_omit(field):
            return
        yield field
