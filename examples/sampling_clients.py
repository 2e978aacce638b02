"""Handlers of sampling requests: a server asks the model of its host, by the client libraries of three providers.

    async with connect("python server.py", with_openai(AsyncOpenAI(), "gpt-5")) as client: ...

Install `openai`, `anthropic` or `google-genai`. Only text is passed on; ask your user before you send it.
"""

from typing import Any

from mcp_bindgen.runtime import Context
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2025_11_25 import types as mcp

Asked = mcp.CreateMessageRequestParams
REASONS = {
    **dict.fromkeys(("stop", "end_turn", "STOP"), "endTurn"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS"), "maxTokens"),
}
"""Reason of a provider -> the reason of MCP."""


def text_of(message: mcp.SamplingMessage) -> str:
    """Return the text of a message."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    return "\n".join(block.text for block in blocks if isinstance(block, mcp.TextContent))


def answer(text: str | None, model: str, reason: str | None) -> mcp.CreateMessageResult:
    """Return the result of a sampling request."""
    content = mcp.TextContent(text=text or "")
    known = REASONS.get(reason or "", reason)
    return mcp.CreateMessageResult(role="assistant", content=content, model=model, stop_reason=known)


def with_openai(openai: Any, model: str) -> Client:
    """Return a client that answers by an `AsyncOpenAI`."""

    class Sampling(Client):
        async def on_create_message(self, params: Asked, ctx: Context) -> mcp.CreateMessageResult:
            messages = [{"role": one.role, "content": text_of(one)} for one in params.messages]
            if params.system_prompt is not None:
                messages.insert(0, {"role": "system", "content": params.system_prompt})
            found = await openai.chat.completions.create(
                model=model, messages=messages, max_completion_tokens=params.max_tokens
            )
            return answer(found.choices[0].message.content, found.model, found.choices[0].finish_reason)

    return Sampling()


def with_anthropic(anthropic: Any, model: str) -> Client:
    """Return a client that answers by an `AsyncAnthropic`."""

    class Sampling(Client):
        async def on_create_message(self, params: Asked, ctx: Context) -> mcp.CreateMessageResult:
            messages = [{"role": one.role, "content": text_of(one)} for one in params.messages]
            system = {} if params.system_prompt is None else {"system": params.system_prompt}
            found = await anthropic.messages.create(
                model=model, messages=messages, max_tokens=params.max_tokens, **system
            )
            return answer(
                "".join(one.text for one in found.content if one.type == "text"), found.model, found.stop_reason
            )

    return Sampling()


def with_gemini(gemini: Any, model: str) -> Client:
    """Return a client that answers by a `google.genai.Client`."""

    class Sampling(Client):
        async def on_create_message(self, params: Asked, ctx: Context) -> mcp.CreateMessageResult:
            roles = {"user": "user", "assistant": "model"}
            contents = [{"role": roles[one.role], "parts": [{"text": text_of(one)}]} for one in params.messages]
            config = {"max_output_tokens": params.max_tokens, "system_instruction": params.system_prompt}
            found = await gemini.aio.models.generate_content(model=model, contents=contents, config=config)
            return answer(found.text, found.model_version or model, found.candidates[0].finish_reason)

    return Sampling()
