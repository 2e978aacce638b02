"""A request at work, and the blocks of content that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from mcp_bindgen.runtime import Context, NotAnswered

Object: TypeAlias = dict[str, Any]
"""A JSON object."""

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


class Ask(Protocol):
    """Asks the client something: the key of the question, its method and its params; returns the answer."""

    async def __call__(self, key: str, method: str, params: Object) -> Object: ...


class Announce(Protocol):
    """Tells all clients that something has changed: the method, and its params."""

    async def __call__(self, method: str, params: Object) -> None: ...


@dataclass(frozen=True)
class Call:
    """A request that is at work.

    Attributes:
        arguments: Arguments of the tool or prompt.
        context: Its way back to the client: progress, log messages.
        ask: Asks the client.
        announce: Tells all clients.
    """

    arguments: Mapping[str, Any]
    context: Context
    ask: Ask
    announce: Announce

    async def form(self, key: str, message: str, required: list[str], **fields: Object) -> Object:
        """Return the user's input into a form, or the user's other decision; `invalid` if the input does not fit."""
        schema = {"type": "object", "properties": fields, "required": required}
        try:
            return await self.ask(key, "elicitation/create", {"message": message, "requestedSchema": schema})
        except NotAnswered as error:
            return {"action": error.action}

    async def model(self, key: str, prompt: str) -> str:
        """Return the answer of the client's model to a prompt."""
        message = {"role": "user", "content": text(prompt)}
        answer = await self.ask(key, "sampling/createMessage", {"messages": [message], "maxTokens": 100})
        blocks: list[Object] | Object = answer["content"]
        one_or_more = blocks if isinstance(blocks, list) else [blocks]
        return " ".join(block["text"] for block in one_or_more if block["type"] == "text")


# --- content ------------------------------------------------------------------------------------------------------


def text(words: str) -> Object:
    """Return a block of text."""
    return {"type": "text", "text": words}


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> Object:
    """Return a block that holds a resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


def entered(answer: Object, field: str) -> str:
    """Return the user's input into a field of a form."""
    content: Object = answer.get("content") or {}
    return str(content.get(field, "nothing"))


IMAGE: Object = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
AUDIO: Object = {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}
STRING: Object = {"type": "string"}
BOOLEAN: Object = {"type": "boolean"}

hidden = {"test_dynamic_tool", "test_dynamic_prompt"}
"""The tools and prompts that are not listed at the moment."""
