"""A clock of the event loop that leaps to the next timer when nothing else is to be done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock


@asynccontextmanager
async def leaping_clock() -> AsyncGenerator[None]:
    """Let time stand still while the event loop works, and leap while it waits.

    Time limits are exact on a machine however busy, and no test waits for them. Only for connections in memory: with a
    thread, a process or a socket, the loop waits for something that takes time.
    """
    loop: Any = asyncio.get_running_loop()
    now, select = loop.time(), loop._selector.select

    def time() -> float:
        return now

    def leap(timeout: float | None = None) -> Any:
        nonlocal now
        events = select(None if timeout is None else 0)
        if not events and timeout:
            now += timeout
        return events

    with mock.patch.object(loop, "time", time), mock.patch.object(loop._selector, "select", leap):
        yield
