"""A clock that jumps to the next timer of the event loop when the loop has no other work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock


@asynccontextmanager
async def leaping_clock() -> AsyncGenerator[None]:
    """Freeze `time.monotonic` while the event loop works, and advance it to the next timer while the loop waits.

    Time limits are exact on any machine, and tests do not wait for them. Use it only for connections in memory: with a
    thread, a process or a socket, the loop waits for work in real time.
    """
    loop: Any = asyncio.get_running_loop()
    selector = loop._selector  # noqa: SLF001 - the only place where a loop waits
    now, select = time.monotonic(), selector.select

    def monotonic() -> float:
        return now

    def leap(timeout: float | None = None) -> Any:
        nonlocal now
        events = select(None if timeout is None else 0)
        if not events and timeout:
            now += timeout
        return events

    with mock.patch.object(time, "monotonic", monotonic), mock.patch.object(selector, "select", leap):
        yield
