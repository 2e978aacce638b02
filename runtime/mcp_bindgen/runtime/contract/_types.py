"""JSON values in and out of the types of a contract, for servers and clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from ..core.validation import problems
from .call_arguments import ABSENT


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the validator and serialiser of a type."""
    return TypeAdapter(kind)


def typed(kind: Any, value: Any, root: str, error: Callable[[list[dict[str, str]]], Exception]) -> Any:
    """Return a JSON value in a type; raise what `error` makes of the problems, whose paths begin at `root`."""
    data = to_json(value)
    try:
        return adapter(kind).validate_json(data)
    except ValidationError as wrong:
        raise error(problems(wrong, root, data)) from None


def structured_content(result: Any) -> Any:
    """Return the structured content of a tool's result in wire form, in whatever revision; `ABSENT` if it has none."""
    members = {"structured_content", "structuredContent"}  # the latter where the revision does not know it
    return result.model_dump(include=members).get("structuredContent", ABSENT)
