"""Sample where a message has one block of content."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say


def one_block_each(messages: Any, say: Say) -> Any:
    """Return messages with several blocks as several messages with one each; no block at all is an empty text."""
    if not is_array(messages):
        return messages
    return [one for message in messages for one in _split(message)]


def _split(message: Any) -> list[Any]:
    content = message.get("content") if is_object(message) else None
    if not is_array(content):
        return [message]
    return [{**message, "content": block} for block in content or [{"type": "text", "text": ""}]]


def one_block(content: Any, say: Say) -> Any:
    """Join blocks of text to one; anything else is refused, unless there is just one block."""
    if len(content) == 1:
        return content[0]
    if not all(is_object(block) and block.get("type") == "text" for block in content):
        say.refuse()
    say.lost()
    return {"type": "text", "text": "\n".join(str(block.get("text", "")) for block in content)}
