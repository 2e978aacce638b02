"""A client that shares no code with the product: lines of JSON to and from a process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Timer
from types import MappingProxyType
from typing import Any

STATEFUL = "2025-11-25"
STATELESS = "2026-07-28"
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""List request -> the result member with the list."""

_METHOD_NOT_FOUND = -32601
_INFO = {"name": "raw", "version": "1"}


class Raw:
    """A connection to a server over its stdin and stdout.

    Args:
        process: The server.
        meta: The `_meta` of each request.
    """

    def __init__(self, process: subprocess.Popen[str], meta: Mapping[str, Any]) -> None:
        self._process = process
        self._meta = meta
        self._ids = count(1)

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the response, with its `result` or `error`; ignore other messages."""
        id_ = next(self._ids)
        said = {"_meta": self._meta} if self._meta else {}
        self.say({"id": id_, "method": method, "params": {**(params or {}), **said}})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == id_ and "method" not in message:
                return message
        raise AssertionError(f"the server went away instead of answering {method}")

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return the response."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def lists(self) -> dict[str, Any]:
        """Return all lists of the server with all pages; None if the server does not know the method."""
        return {member: self._all(method, member) for method, member in LISTS.items()}

    def _all(self, method: str, member: str) -> list[Any] | None:
        found: list[Any] = []
        params: dict[str, Any] = {}
        while True:
            answer = self.ask(method, params)
            if "error" in answer:
                assert answer["error"]["code"] == _METHOD_NOT_FOUND, answer
                return None
            found += answer["result"][member]
            if "nextCursor" not in answer["result"]:
                return found
            params = {"cursor": answer["result"]["nextCursor"]}


@contextmanager
def raw(
    command: Sequence[str],
    revision: str = STATEFUL,
    *,
    seconds: float = 60,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Raw]:
    """Start a server and do the handshake; end the server after the block or at the time limit.

    Args:
        command: The command line of the server.
        revision: The revision to use.
        seconds: Time limit of the block.
        variables: Additional environment variables of the server.
    """
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        yield _stateless(process) if revision == STATELESS else _greeted(process, revision)
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def _greeted(process: subprocess.Popen[str], revision: str) -> Raw:
    conversation = Raw(process, {})
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _INFO}
    answer = conversation.ask("initialize", hello)
    assert answer["result"]["protocolVersion"] == revision, answer
    conversation.say({"method": "notifications/initialized"})
    return conversation


def _stateless(process: subprocess.Popen[str]) -> Raw:
    said = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": _INFO}
    return Raw(process, {f"io.modelcontextprotocol/{name}": value for name, value in said.items()})


def exact(document: Any) -> str:
    """Return a JSON document as text that distinguishes 1 from 1.0 and keeps the order of members."""
    return json.dumps(document, indent=1, ensure_ascii=False)
