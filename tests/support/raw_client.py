"""A client that shares no code with ours: lines of JSON to a process, and back."""

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
"""Request -> the member of its result that is the list."""

_METHOD_NOT_FOUND = -32601
_INFO = {"name": "raw", "version": "1"}


class Raw:
    """A conversation with a server over its stdin and stdout.

    Args:
        process: The server.
        meta: What each request says of the client.
    """

    def __init__(self, process: subprocess.Popen[str], meta: Mapping[str, Any]) -> None:
        self._process = process
        self._meta = meta
        self._ids = count(1)

    def say(self, message: Mapping[str, Any]) -> None:
        """Sends a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request, with its `result` or `error`; what else the server says is left aside."""
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
        """The answer to `tools/call`."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def lists(self) -> dict[str, Any]:
        """Return what the server offers, as it came: all pages, `None` for what it does not know."""
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
    """A server, started and greeted; it is ended after the block, or when all of it takes too long.

    Args:
        command: The words that start it.
        revision: The revision to speak.
        seconds: How long the block may take.
        variables: What its environment says beyond ours.
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
    """A JSON document as text that tells 1 from 1.0 and knows the order of members."""
    return json.dumps(document, indent=1, ensure_ascii=False)
