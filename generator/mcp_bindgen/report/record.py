"""Dataclasses as JSON, and as JSON Schema, by pydantic: members in camel case."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from mcp_bindgen.conversion.document import described
from mcp_bindgen.spec.keywords import DIALECT

_CONFIG = ConfigDict(alias_generator=to_camel, extra="forbid", json_schema_serialization_defaults_required=True)


@cache
def _adapter(kind: type) -> TypeAdapter[list[Any]]:
    return TypeAdapter(list[kind], config=_CONFIG)  # type: ignore[valid-type]


def as_json(value: object) -> Any:
    """Return a dataclass as JSON."""
    adapter = _adapter(type(value))  # type: ignore[arg-type]  # mypy takes __hash__ of instances for that of classes
    (found,) = adapter.dump_python([value], mode="json", by_alias=True)
    return found


def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass as `as_json` writes it; docstrings describe the members."""
    found = described(_adapter(kind).json_schema(by_alias=True, mode="serialization"), to_camel)
    definitions = found["$defs"]
    return {"$schema": DIALECT, **definitions.pop(kind.__name__), "$defs": definitions}
