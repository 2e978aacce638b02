"""Say blocks of content in other words."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say

_LINK = frozenset({"description", "icons", "mimeType", "name", "size", "title", "uri"})
"""The members that make a link."""


def audio_as_resource(block: Any, say: Say) -> Any:
    """Return an audio block as an embedded resource with its bytes and media type."""
    say.lost()
    resource = {"uri": "embedded:audio", "mimeType": block.pop("mimeType", None), "blob": block.pop("data", None)}
    return {**block, "type": "resource", "resource": {name: one for name, one in resource.items() if one is not None}}


def link_as_text(block: Any, say: Say) -> Any:
    """Return a link to a resource as text: its title or name, its URI, its description."""
    say.lost()
    lines = (block.get("title") or block.get("name"), block.get("uri"), block.get("description"))
    kept = {name: value for name, value in block.items() if name not in _LINK}
    return {**kept, "type": "text", "text": "\n".join(line for line in lines if isinstance(line, str) and line)}


def structured_as_text(result: Any, say: Say) -> Any:
    """Add structured content as JSON text to a result that has no text."""
    if not is_object(result) or "structuredContent" not in result or not is_array(result.get("content")):
        return result
    if not any(is_object(block) and block.get("type") == "text" for block in result["content"]):
        result["content"].append({"type": "text", "text": to_json(result["structuredContent"]).decode()})
    return result
