"""The prompts of a contract."""

from __future__ import annotations

from typing import Any

from ..core import jsonrpc
from .errors import BrokenPromise
from .feature import Feature, is_several, text_block

LIST_PROMPTS = "prompts/list"
GET_PROMPT = "prompts/get"


class Prompts(Feature):
    """Answers `prompts/list` and `prompts/get`."""

    members = ("prompts",)

    async def list_prompts(self, params: Any, ctx: Any) -> Any:
        """Answers `prompts/list`."""
        return self.listing(LIST_PROMPTS, "prompts", params)

    async def get_prompt(self, params: Any, ctx: Any) -> Any:
        """Answers `prompts/get`.

        Raises:
            ProtocolError: There is no such prompt, or the arguments do not fit it.
            BrokenPromise: The method gave something that is no prompt.
        """
        promise = self.find("prompt", params.name)
        answer = await promise.keep(promise.typed(params.arguments or {}, "params.arguments"), ctx)
        result = self.given(GET_PROMPT, answer)
        if result is not None:
            return result
        wire = {"messages": _messages(params.name, answer)}
        described = promise.entry.get("description")
        return self.typed(GET_PROMPT, wire if described is None else {"description": described, **wire})


def _messages(name: str, answer: object) -> list[Any]:
    if isinstance(answer, str):
        return [{"role": "user", "content": text_block(answer)}]
    if is_several(answer):
        return [jsonrpc.plain(message) for message in answer]
    raise BrokenPromise(f"the prompt {name!r} gave {type(answer).__name__}, which is no prompt")
