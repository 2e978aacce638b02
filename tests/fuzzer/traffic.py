"""Real traffic of each revision: the messages between our own client and server, recorded in this process."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import anyio

from mcp_bindgen.runtime import ProtocolError, RequestTimeout, Transport, serve
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness.checked_connections import bindings
from tests.harness.commands import ROOT

from .peers import TOOLS, client, server

PATIENCE = 60.0
EXAMPLES = ROOT / "examples" / "traffic"


@dataclass
class Traffic:
    """Messages of the client and of the server in a conversation, as JSON documents in order."""

    client: list[Any] = field(default_factory=list)
    server: list[Any] = field(default_factory=list)

    def results(self) -> dict[str, list[Any]]:
        """Return method -> its results, for requests of both sides."""
        asked = {
            (side, json.dumps(message["id"])): message["method"]
            for side, messages in (("server", self.client), ("client", self.server))
            for message in messages
            if "method" in message and "id" in message
        }
        found: dict[str, list[Any]] = {}
        for side, messages in (("server", self.server), ("client", self.client)):
            for message in messages:
                method = asked.get((side, json.dumps(message.get("id"))))
                if "result" in message and method is not None:
                    found.setdefault(method, []).append(message["result"])
        return found


class _Tap(Transport):
    """Transport that records the messages sent over it."""

    def __init__(self, transport: Transport, notes: list[Any]) -> None:
        self._transport, self._notes = transport, notes

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        return await self._transport.receive()

    async def close(self) -> None:
        await self._transport.close()

    async def send(self, messages: Sequence[bytes]) -> None:
        self._notes += map(json.loads, messages)
        await self._transport.send(messages)


@cache
def traffic(revision: str) -> Traffic:
    """Return a conversation that uses each feature once, plus the messages of `examples/traffic`."""
    found = Traffic()

    async def converse() -> None:
        ours, theirs = pair()
        with anyio.fail_after(PATIENCE):
            await meet(ours, theirs)

    async def meet(ours: Transport, theirs: Transport) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, _Tap(theirs, found.server), server(revision))
            async with type(client(revision)).connect(_Tap(ours, found.client)) as one:
                for work in calls(one, revision):
                    with suppress(ProtocolError, RequestTimeout):
                        await work()

    anyio.run(converse)
    for line in (EXAMPLES / f"{revision}.jsonl").read_text("utf-8").splitlines():
        said = json.loads(line)
        (found.client if said["from"] == "client" else found.server).append(said["message"])
    return found


def calls(one: Any, revision: str) -> list[Callable[[], Awaitable[Any]]]:
    """Return calls of every method of a revision, to be made in order."""
    mcp: Any = bindings(revision).types
    reference, argument = mcp.PromptReference(name="greet"), mcp.CompleteRequestParamsArgument(name="a", value="b")
    counting = one.with_options(on_progress=lambda params: None)
    hasty = one.with_options(total_timeout=0.001)
    calls: list[Callable[[], Awaitable[Any]]] = [
        one.list_tools,
        *(lambda name=name: one.call_tool(name, {"text": "Größe"}) for name in TOOLS),
        lambda: counting.call_tool("count"),
        lambda: hasty.call_tool("pause"),
        lambda: one.call_tool("unknown"),
        one.list_resources,
        one.list_resource_templates,
        lambda: one.read_resource("test://a"),
        one.list_prompts,
        lambda: one.get_prompt("greet", {"name": "Ada"}),
        lambda: one.complete(reference, argument),
    ]
    if hasattr(one, "subscribe"):
        calls += [
            lambda: one.subscribe("test://a"),
            lambda: one.unsubscribe("test://a"),
            lambda: one.set_level("debug"),
            one.ping,
            one.notify_roots_list_changed,
        ]
    return calls
