"""Finds the paginated lists: what a client walks through with `each_...`."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.model import Array, Method, Object, Type

from .annotations import annotation


@dataclass(frozen=True)
class Walk:
    """All items of a paginated list, one by one.

    Attributes:
        name: The stub, e.g. `each_tool`.
        call: The call that gives a page, e.g. `list_tools`.
        item: The type of an item.
        field: The field of a page that holds its items.
    """

    name: str
    call: str
    item: str
    field: str


def walk(protocol: Protocol, method: Method) -> Walk | None:
    """How to walk through the results of `method`; `None` when it is not paginated."""
    params = protocol.resolve(method.params) if method.params is not None else None
    result = protocol.resolve(method.result) if method.result is not None else None
    if not isinstance(params, Object) or params.field("cursor") is None:
        return None
    if not isinstance(result, Object) or result.field("nextCursor") is None:
        return None
    lists: list[tuple[str, Type]] = [
        (field.name, field.type.items) for field in result.fields if field.required and isinstance(field.type, Array)
    ]
    if len(lists) != 1:
        return None
    (name, item) = lists[0]
    return Walk(naming.walker(method.stub), method.stub, annotation(item), name)
