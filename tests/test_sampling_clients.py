"""Examples of sampling handlers, run with stand-ins for the model SDKs that record the requests."""

from __future__ import annotations

from runpy import run_path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.commands import ROOT

EXAMPLE = run_path(str(ROOT / "examples" / "sampling_clients.py"))

HI, YES = ({"role": role, "content": text} for role, text in (("user", "hi\nthere"), ("assistant", "yes?")))
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "hi\nthere"}]}, {"role": "model", "parts": [{"text": "yes?"}]}],
    "config": {"max_output_tokens": 50, "system_instruction": "Be brief."},
}


def params(*, with_system: bool = True) -> mcp.CreateMessageRequestParams:
    text: list[Any] = [mcp.TextContent(text="hi"), mcp.TextContent(text="there")]
    messages = [
        mcp.SamplingMessage(role="user", content=text),
        mcp.SamplingMessage(role="assistant", content=mcp.TextContent(text="yes?")),
    ]
    system: dict[str, Any] = {"system_prompt": "Be brief."} if with_system else {}
    return mcp.CreateMessageRequestParams(messages=messages, max_tokens=50, **system)


CHOICE = SimpleNamespace(message=SimpleNamespace(content="hello"), finish_reason="length")
BLOCKS = [SimpleNamespace(type="thinking"), SimpleNamespace(type="text", text="hello")]
CANDIDATE = SimpleNamespace(finish_reason="STOP")


@pytest.mark.parametrize(
    ("make", "method", "answer", "request_", "reason"),
    [
        (
            "with_openai",
            "chat.completions.create",
            {"choices": [CHOICE], "model": "m-1"},
            {"messages": [{"role": "system", "content": "Be brief."}, HI, YES], "max_completion_tokens": 50},
            "maxTokens",
        ),
        (
            "with_anthropic",
            "messages.create",
            {"content": BLOCKS, "model": "m-1", "stop_reason": "refusal"},
            {"messages": [HI, YES], "max_tokens": 50, "system": "Be brief."},
            "refusal",
        ),
        (
            "with_gemini",
            "aio.models.generate_content",
            {"text": "hello", "model_version": "m-1", "candidates": [CANDIDATE]},
            GEMINI,
            "endTurn",
        ),
    ],
    ids=["openai", "anthropic", "gemini"],
)
async def test_a_sampling_handler_calls_its_provider_and_converts_the_response(
    make: str, method: str, answer: dict[str, Any], request_: dict[str, Any], reason: str
) -> None:
    library = AsyncMock()
    library.configure_mock(**{f"{method}.return_value": SimpleNamespace(**answer)})
    client = EXAMPLE[make](library, "m")
    result = await client.on_create_message(params(), None)
    assert result.model_dump() == {
        "role": "assistant",
        "content": {"type": "text", "text": "hello"},
        "model": "m-1",
        "stopReason": reason,
    }
    called = library
    for part in method.split("."):
        called = getattr(called, part)
    called.assert_awaited_once_with(model="m", **request_)
    await client.on_create_message(params(with_system=False), None)
    assert "Be brief." not in str(called.await_args)
