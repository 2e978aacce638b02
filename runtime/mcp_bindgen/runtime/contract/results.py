"""What is in the result of a tool, in every revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call_arguments import ABSENT

_WIRE = "structuredContent"


def structured_content(result: Any) -> Any:
    """The structured content of a result in wire form; `ABSENT` if it has none.

    Revisions that do not know it let it pass.
    """
    if "structured_content" in result.model_fields_set:
        return result.structured_content
    extra: Mapping[str, Any] = result.model_extra or {}
    return extra.get(_WIRE, ABSENT)


def text(result: Any) -> str:
    """The text blocks of a result, one below the other."""
    return "\n".join(block.text for block in result.content if block.type == "text")
