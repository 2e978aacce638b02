"""HTTP requests to an ASGI application in this process, with every ASGI message under the test's control."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

PATIENCE = 60.0


class Exchange:
    """An HTTP request to an application in this process.

    Args:
        app: The application.
        method: HTTP method.
        headers: Pairs of name and value; a name may occur several times.
        parts: Chunks of the body; at `None`, the body stalls.
        path: The path.
        pause: Seconds before each chunk.
        scope: Further entries of the ASGI scope.

    Attributes:
        status: HTTP status; 0 until the response has begun.
        headers: The headers of the response.
        body: The part of the response body that has arrived.
        over: True if the response body is complete.
        flows: While this event is cleared, the client reads nothing, so writes of the application block.
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
        """Disconnect."""
        self._gone.set()
        self.flows.set()

    async def gone(self) -> None:
        """Disconnect and wait until the application has noticed."""
        self.cut()
        await self.end()

    async def end(self) -> Self:
        """Wait until the application has returned."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        assert self.over or self._gone.is_set()
        return self

    async def until(self, fact: Callable[[], object]) -> None:
        """Wait until a condition on the response holds, or until the response is complete."""
        async with asyncio.timeout(PATIENCE):
            while not fact() and not self.over:
                self._news.clear()
                await self._news.wait()

    async def head(self) -> int:
        """Return the status as soon as the response has begun."""
        await self.until(lambda: self.status)
        return self.status

    async def primed(self) -> None:
        """Wait for the first event."""
        await self.until(lambda: self.blocks)

    async def whole(self) -> bytes:
        """Return the complete body."""
        await self.until(lambda: False)
        await self.end()
        return self.body

    async def rest(self) -> list[Any]:
        """Return all messages of a response that ends."""
        await self.whole()
        return self.messages

    async def answered(self) -> Any:
        """Return the last message, which is the response to the request."""
        return (await self.rest())[-1]

    async def several(self, count: int) -> list[Any]:
        """Return the first `count` messages."""
        await self.until(lambda: len(self.messages) >= count)
        return self.messages

    @property
    def kind(self) -> str:
        """Content type."""
        return self.headers.get("content-type", "")

    @property
    def blocks(self) -> list[dict[str, str]]:
        """Complete events so far; the values of a repeated field are joined as lines."""
        found: list[dict[str, str]] = []
        for block in self.body.decode().split("\n\n")[:-1]:
            if not block.startswith(":"):
                found.append({})
                for name, _, value in (line.partition(": ") for line in block.split("\n")):
                    found[-1][name] = f"{found[-1][name]}\n{value}" if name in found[-1] else value
        return found

    @property
    def messages(self) -> list[Any]:
        """Messages that have arrived."""
        if self.kind == "text/event-stream":
            return [json.loads(block["data"]) for block in self.blocks if block.get("data")]
        return [json.loads(self.body)] if self.over and self.body and self.kind == "application/json" else []

    @property
    def last_id(self) -> str:
        """Id of the last event."""
        return [block["id"] for block in self.blocks if "id" in block][-1]
