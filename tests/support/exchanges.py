"""HTTP requests that an ASGI application answers in this process, played by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

PATIENCE = 60.0


class Exchange:
    """An HTTP request that an application answers, in this process.

    Args:
        app: The application.
        method: GET, POST...
        headers: Names and values, several of a name if need be.
        parts: The parts of the body; `None` stands for a part that never comes.
        path: The path.
        pause: Seconds before each part.
        scope: More of ASGI's scope.

    Attributes:
        status: The status; 0 before it is known.
        headers: The headers of the response.
        body: The part of the body that has arrived.
        over: True if the body is complete.
        flows: Cleared, the client reads nothing: what is written to it gets stuck.
    """

    def __init__(
        self,
        app: Any,
        method: str,
        headers: Iterable[tuple[str, str]],
        parts: Sequence[bytes | None],
        path: str = "/mcp",
        pause: float = 0,
        **scope: Any,
    ) -> None:
        self.status, self.headers, self.body, self.over = 0, dict[str, str](), b"", False
        self.flows, self._gone, self._news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.flows.set()
        self._parts, self._pause = list(parts), pause
        sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        known = {"type": "http", "method": method, "path": path, "root_path": "", "query_string": b"", "headers": sent}
        self.task = asyncio.create_task(app({**known, **scope}, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._parts and not self._gone.is_set():
            await asyncio.sleep(self._pause)
            part = self._parts.pop(0)
            if part is not None:
                return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.flows.wait()
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            assert not self.status
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert self.status
            assert not self.over
            self.body += message.get("body", b"")
            self.over = not message.get("more_body", False)
        self._news.set()

    def cut(self) -> None:
        """Hangs up."""
        self._gone.set()
        self.flows.set()

    async def gone(self) -> None:
        """Hangs up, and waits until the application has noticed."""
        self.cut()
        await self.end()

    async def end(self) -> Self:
        """Waits for the application to end."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        assert self.over or self._gone.is_set()
        return self

    async def until(self, fact: Callable[[], object]) -> None:
        """Waits until something is true of what came, or all came."""
        async with asyncio.timeout(PATIENCE):
            while not fact() and not self.over:
                self._news.clear()
                await self._news.wait()

    async def head(self) -> int:
        """The status, once it is there."""
        await self.until(lambda: self.status)
        return self.status

    async def primed(self) -> None:
        """Waits for an event."""
        await self.until(lambda: self.blocks)

    async def whole(self) -> bytes:
        """The whole body."""
        await self.until(lambda: False)
        await self.end()
        return self.body

    async def rest(self) -> list[Any]:
        """All messages of a response that ends."""
        await self.whole()
        return self.messages

    async def answered(self) -> Any:
        """The last message, which answers."""
        return (await self.rest())[-1]

    async def several(self, count: int) -> list[Any]:
        """The first messages."""
        await self.until(lambda: len(self.messages) >= count)
        return self.messages

    @property
    def kind(self) -> str:
        """The content type."""
        return self.headers.get("content-type", "")

    @property
    def blocks(self) -> list[dict[str, str]]:
        """The events that have arrived as a whole; a field that is repeated is one of several lines."""
        found: list[dict[str, str]] = []
        for block in self.body.decode().split("\n\n")[:-1]:
            if not block.startswith(":"):
                found.append({})
                for name, _, value in (line.partition(": ") for line in block.split("\n")):
                    found[-1][name] = f"{found[-1][name]}\n{value}" if name in found[-1] else value
        return found

    @property
    def messages(self) -> list[Any]:
        """The messages that have arrived."""
        if self.kind == "text/event-stream":
            return [json.loads(block["data"]) for block in self.blocks if block.get("data")]
        return [json.loads(self.body)] if self.over and self.body and self.kind == "application/json" else []

    @property
    def last_id(self) -> str:
        """The id of the last event."""
        return [block["id"] for block in self.blocks if "id" in block][-1]
