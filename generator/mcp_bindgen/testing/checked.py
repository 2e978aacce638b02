"""Connections in memory that check the messages of the server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import anyio
import jsonschema_rs

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.protocol.model import Ref
from mcp_bindgen.runtime import Client, Server, Transport, serve
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized
from mcp_bindgen.runtime.session.service import Served, all_servers, lifespans
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.spec import EffectiveSchema, Store, extend, external
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

AnyClient = TypeVar("AnyClient", bound=Client)


@asynccontextmanager
async def connected(
    client: AnyClient, *served: Server | Served, schema: Path | None = None
) -> AsyncGenerator[AnyClient]:
    """Connect a client with servers in memory; messages are bytes, as between processes.

    Args:
        client: The client.
        served: One server for each revision, or a provider of them such as an `App`.
        schema: Schema file of the revision of the client, if it is not part of mcp-bindgen. Its facts are in a file of
            the same name with the suffix `.toml`.

    Raises:
        AssertionError: A message of the server is not valid against the JSON Schema of the revision.
    """
    servers = all_servers(served)
    ours, theirs = pair()
    watched = Watched(ours, client.revision, schema, [extension.id for extension in client.extensions])
    async with lifespans(servers), anyio.create_task_group() as tasks:
        tasks.start_soon(serve, theirs, *servers)
        async with client.connected(watched) as it:
            yield it
    assert not watched.problems, "\n".join(watched.problems)


class Watched(Transport):
    """Transport that validates received messages against the JSON Schema of a revision.

    Args:
        inner: The wrapped transport.
        revision: The revision.
        schema: Schema file, as for `connected`.
        extensions: Ids of the extensions in use.

    Attributes:
        problems: One line for each invalid message.
    """

    def __init__(
        self, inner: Transport, revision: str, schema: Path | None = None, extensions: Iterable[str] = ()
    ) -> None:
        self.problems: list[str] = []
        self._inner = inner
        self._judge = _judge(revision, schema, tuple(extensions))
        self._asked: dict[Any, str] = {}

    async def receive(self) -> Sequence[bytes | Lost | Oversized]:
        """Receive a message and check it."""
        messages = await self._inner.receive()
        for message in messages:
            if isinstance(message, bytes):
                for one in _each(json.loads(message)):
                    self.problems.extend(self._judge.problems(one, self._asked.get(one.get("id"))))
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send a message and record its requests."""
        for message in messages:
            for one in _each(json.loads(message)):
                if "method" in one and "id" in one:
                    self._asked[one["id"]] = one["method"]
        await self._inner.send(messages)

    async def close(self) -> None:
        """Close the transport."""
        await self._inner.close()


def _each(document: Any) -> Iterable[dict[str, Any]]:
    """Return the messages of a document: one message or a batch."""
    return [one for one in document if is_object(one)] if is_array(document) else [document]


class _Judge:
    """Judge of the messages of a revision.

    Args:
        protocol: The revision.
        definitions: JSON Schema of the revision.
    """

    def __init__(self, protocol: Protocol, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._methods = {method.name: method for method in protocol.methods}
        added = [pair for extension in protocol.extensions for pair in extension.alternatives]
        self._instead = {
            method.name: [one for name, names in added if name == method.name for one in names]
            for method in protocol.methods
        }
        self._schemas: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def problems(self, message: dict[str, Any], asked: str | None) -> list[str]:
        """Return the problems of a message; `asked` is the method of the request of a response."""
        found = self._check(message, "JSONRPCMessage")
        if "method" in message:
            method = self._methods.get(message["method"])
            found += self._check(message, method.definition) if method is not None else []
        elif "result" in message and asked in self._methods:
            method = self._methods[asked]
            types = (method.result, *method.alternatives)
            names = [type.name for type in types if isinstance(type, Ref)]
            found += self._check(message["result"], *names, *self._instead[method.name])
        return found

    def _check(self, value: Any, *names: str) -> list[str]:
        """Return the problem of a value that is not valid against any of the definitions."""
        known = [name for name in names if name in self._definitions]
        errors = [next(iter(self._validator(name).iter_errors(value)), None) for name in known]
        if not errors or None in errors:
            return []
        return [f"{json.dumps(value)} is no {' or '.join(known)}: {str(errors[0]).splitlines()[0]}"]

    def _validator(self, name: str) -> jsonschema_rs.Draft202012Validator:
        if name not in self._schemas:
            schema = {"$ref": f"#/$defs/{name}", "$defs": self._definitions}
            self._schemas[name] = jsonschema_rs.Draft202012Validator(schema)
        return self._schemas[name]


@cache
def _judge(revision: str, schema: Path | None, extensions: tuple[str, ...]) -> _Judge:
    source = _effective(revision, schema)
    if extensions:
        source = extend(source, *(one for one in Store().extensions_of(source) if one.id in extensions))
    return _Judge(build(source), dict(source.definitions))


def _effective(revision: str, schema: Path | None) -> EffectiveSchema:
    if schema is None:
        return Store().effective(revision)
    store, own = Store(), schema.with_suffix(".toml")
    facts = merge_semantics(store.semantics, read_semantics(own)) if own.exists() else store.semantics
    return external(schema, revision, facts, store.ledger)
