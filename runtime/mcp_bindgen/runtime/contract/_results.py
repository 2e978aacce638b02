"""What servers and clients both do with results and their types."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from .call_arguments import ABSENT


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the validator and serialiser of a type."""
    return TypeAdapter(kind)


def structured_content(result: Any) -> Any:
    """Return the structured content of a tool's result in wire form, in whatever revision; `ABSENT` if it has none."""
    members = {"structured_content", "structuredContent"}  # the latter where the revision does not know it
    return result.model_dump(include=members).get("structuredContent", ABSENT)
