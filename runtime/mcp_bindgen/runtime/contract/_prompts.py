"""The prompts of a contract."""

from __future__ import annotations

from typing import Any

from ._feature import Feature, items, lists, text_block
from .handlers import BoundHandler


class Prompts(Feature):
    """Answers `prompts/list` and `prompts/get`."""

    members = ("prompts",)
    list_prompts = lists("prompts/list", "prompts")

    async def get_prompt(self, params: Any, ctx: Any) -> Any:
        """Return the messages of a prompt.

        Raises:
            ProtocolError: There is no such prompt, or the arguments do not fit it.
            InvalidResult: The handler returned something that is no prompt.
        """
        handler = self.find("prompt", params.name)
        arguments = handler.read(params.arguments or {}, "params.arguments")
        return await self.answer("prompts/get", handler, arguments, ctx, _build)


def _build(handler: BoundHandler, returned: Any) -> dict[str, Any]:
    return {**handler.described("description"), "messages": items(handler, returned, _message)}


def _message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text_block(text)}
