"""Connections in memory that check the messages of the server."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from mcp_bindgen.runtime import Client, Server, Transport, serve
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized
from mcp_bindgen.runtime.session.endpoint import all_served, lifespans
from mcp_bindgen.runtime.session.targets import Provider
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.spec.json import is_array, is_object

from .judge import judge_of

AnyClient = TypeVar("AnyClient", bound=Client)


@asynccontextmanager
async def connected(
    client: AnyClient, *served: Server | Provider, schema: Path | None = None
) -> AsyncGenerator[AnyClient]:
    """Connect a client with servers in memory; messages are bytes, as between processes.

    Args:
        client: The client.
        served: One server for each revision, or a provider of them such as an `App`.
        schema: Schema file of the revision of the client, if it is not part of mcp-bindgen; by default
            `schema/REVISION.json` above its bindings. Its facts are in a file of the same name with the suffix `.toml`.

    Raises:
        AssertionError: A message of the server is not valid against the JSON Schema of the revision that the server
            spoke, which is not the client's if a bridge converts.
    """
    servers = all_served(served)
    ours, theirs = pair()
    schema = schema or _schema_of(client)
    watched, spoken = Watched(ours), client.revision
    async with lifespans(servers), anyio.create_task_group() as tasks:
        tasks.start_soon(serve, theirs, *servers)
        async with client.connected(watched) as it:
            spoken = it.wire_revision
            yield it
    judge = judge_of(spoken, tuple(one.id for one in client.extensions), schema if spoken == client.revision else None)
    problems = [
        f"{json.dumps(one)}: {found}" for one, asked in watched.received for found in judge.violations(one, asked)
    ]
    assert not problems, "\n".join(problems)


def _schema_of(client: Client) -> Path | None:
    """Return the schema file beside the bindings of a client that a project has of its own."""
    specs = [sys.modules[one.__module__].__spec__ for one in type(client).__mro__[:-1]]
    files = [Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None]
    places = [folder / "schema" / f"{client.revision}.json" for file in files for folder in file.parents]
    return next((place for place in places if place.is_file()), None)


class Watched(Transport):
    """Transport that records received messages.

    Args:
        inner: The wrapped transport.

    Attributes:
        received: The messages, and for a response the method of its request.
    """

    def __init__(self, inner: Transport) -> None:
        self.received: list[tuple[dict[str, Any], str | None]] = []
        self._inner = inner
        self._asked: dict[Any, str] = {}

    async def receive(self) -> Sequence[bytes | Lost | Oversized]:
        """Receive messages and record them."""
        messages = await self._inner.receive()
        for message in messages:
            if isinstance(message, bytes):
                self.received += [(one, self._asked.get(one.get("id"))) for one in _each(json.loads(message))]
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send a message and record its requests."""
        for message in messages:
            for one in _each(json.loads(message)):
                if "method" in one and "id" in one:
                    self._asked[one["id"]] = one["method"]
        await self._inner.send(messages)

    async def end_reason(self) -> str:
        """Return the reason why the other side is gone."""
        return await self._inner.end_reason()

    async def close(self) -> None:
        """Close the transport."""
        await self._inner.close()


def _each(document: Any) -> Iterable[dict[str, Any]]:
    """Return the messages of a document: one message or a batch."""
    return [one for one in document if is_object(one)] if is_array(document) else [document]
