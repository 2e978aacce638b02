"""Requests that need a capability because of what their params hold, checked by both sides (MCP, "Elicitation")."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.transports.memory import pair
from tests.support.checked_connections import (
    STATELESS,
    Raw,
    answer,
    bindings,
    bounded,
    connected,
    request,
    running,
    until,
)

STATEFUL = "2025-11-25"
BOTH = [STATEFUL, STATELESS]
URL = {"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
TOOLS = {"messages": [], "maxTokens": 1, "tools": []}
CHOICE = {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "auto"}}
CONTEXT = {"messages": [], "maxTokens": 1, "includeContext": "allServers"}
PLAIN = {"messages": [], "maxTokens": 1, "includeContext": "none"}

CASES = [
    (FORM, {"elicitation": {}}, None),
    ({**FORM, "mode": "form"}, {"elicitation": {}}, None),
    (FORM, {"elicitation": {"form": {}}}, None),
    (FORM, {"elicitation": {"url": {}}}, "elicitation.form"),
    (FORM, {}, "elicitation"),
    (URL, {"elicitation": {}}, "elicitation.url"),
    (URL, {"elicitation": {"form": {}}}, "elicitation.url"),
    (URL, {"elicitation": {"url": {}}}, None),
    (PLAIN, {"sampling": {}}, None),
    (TOOLS, {"sampling": {}}, "sampling.tools"),
    (TOOLS, {"sampling": {"context": {}}}, "sampling.tools"),
    (TOOLS, {"sampling": {"tools": {}}}, None),
    (CHOICE, {"sampling": {}}, "sampling.tools"),
    (CONTEXT, {"sampling": {"tools": {}}}, "sampling.context"),
    (CONTEXT, {"sampling": {"context": {}}}, None),
]


def params_of(types: Any, wire: dict[str, Any]) -> Any:
    """Typed params."""
    if "maxTokens" in wire:
        return types.CreateMessageRequestParams.model_validate(wire)
    kind = types.ElicitRequestURLParams if wire.get("mode") == "url" else types.ElicitRequestFormParams
    return kind.model_validate(wire)


def made_client(revision: str, declared: Any) -> tuple[Any, list[Any]]:
    """A client that answers everything, but declares only what it is told to; and what it was asked."""
    package: Any = bindings(revision)
    asked: list[Any] = []

    class Home(package.Client):  # type: ignore[misc]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            asked.append(params)
            return package.types.ElicitResult(action="decline")

        async def on_create_message(self, params: Any, ctx: Any) -> Any:
            asked.append(params)
            text = package.types.TextContent(text="hm")
            return package.types.CreateMessageResult(role="assistant", content=text, model="m")

        def extra_capabilities(self) -> Any:
            return declared

    return Home(), asked


@pytest.mark.parametrize("revision", BOTH)
@pytest.mark.parametrize(("wire", "declared", "lacking"), CASES)
def test_servers_ask_only_what_was_declared(revision: str, wire: Any, declared: Any, lacking: str | None) -> None:
    package: Any = bindings(revision)

    class Asking(package.Server):  # type: ignore[misc]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            await ctx.ask_params("q", params_of(package.types, wire))
            return package.types.CallToolResult(content=[])

    client, asked = made_client(revision, declared)
    if "elicitation" not in declared:
        type(client).on_elicit = package.Client.on_elicit
    if "sampling" not in declared:
        type(client).on_create_message = package.Client.on_create_message

    @bounded()
    async def talk() -> None:
        async with connected(client, Asking()) as connection:
            if lacking is None:
                await connection.client.call_tool("x")
                assert len(asked) == 1
                return
            with pytest.raises(ProtocolError) as caught:
                await connection.client.call_tool("x")
            assert lacking in caught.value.message
            assert not asked

    talk()


@pytest.mark.parametrize(("wire", "declared", "lacking"), CASES)
def test_clients_take_only_what_they_declared(wire: Any, declared: Any, lacking: str | None) -> None:
    client, asked = made_client(STATEFUL, declared)
    method = "sampling/createMessage" if "maxTokens" in wire else "elicitation/create"

    @bounded()
    async def talk() -> None:
        left, right = pair()
        raw = Raw(right)
        answers: list[Any] = []

        async def script() -> None:
            await raw.welcome()
            answers.append(await raw.ask(request(1, method, wire)))

        async with running(script()), client.connected(left):
            await until(lambda: answers)
        await raw.close()
        (said,) = answers
        if lacking in (None, "elicitation", "sampling.context"):  # the last one is only for servers to ask
            assert "result" in said
            assert len(asked) == 1
        else:
            assert said["error"]["code"] == -32602
            assert str(lacking) in said["error"]["message"]
            assert not asked

    talk()


async def test_clients_refuse_what_a_result_asks_and_they_did_not_declare() -> None:
    client, asked = made_client(STATELESS, {"elicitation": {"form": {}}})
    fresh = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    left, right = pair()
    raw = Raw(right)

    async def script() -> None:
        found = await raw.receive()
        offers = {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
        await raw.send(answer(found["id"], {**offers, **fresh}))
        found = await raw.receive()
        question = {"method": "elicitation/create", "params": URL}
        await raw.send(answer(found["id"], {"resultType": "input_required", "inputRequests": {"q": question}}))

    async with running(script()), client.connected(left) as caller:
        with pytest.raises(ProtocolError, match=r"elicitation\.url") as caught:
            await caller.call_tool("x")
        assert caught.value.code == -32602
        assert not asked
    await raw.close()
