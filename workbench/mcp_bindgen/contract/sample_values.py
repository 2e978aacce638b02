"""Sample values for JSON Schemas, from their members, limits and constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.examples import Examples, scalars
from mcp_bindgen.ir.model import Const, Scalar, parts

from .exact import VALUE, exact_types

_EVERYWHERE = (
    "text",
    "",
    "a",
    "A",
    "0",
    "a-b",
    "2025-01-01",
    "a@example.org",
    "https://example.org/a",
    0,
    -1,
    2,
    1.5,
    10,
)


def sample_values(schema: Any) -> Iterator[Any]:
    """Yield sample values for a JSON Schema; some are not valid."""
    types = exact_types(schema)
    yield from Examples(types, [*_EVERYWHERE, *_mentioned(types)]).several(VALUE)


def _mentioned(types: Protocol) -> Iterator[Any]:
    """Yield the constants and the values at limits."""
    pending = [definition.type for definition in types.definitions.values()]
    while pending:
        type = pending.pop()
        pending.extend(parts(type))
        match type:
            case Scalar():
                yield from scalars(type)
            case Const(values):
                yield from values
            case _:
                pass
