"""Know when the process is told to stop: ASGI tells applications only after their last response."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

knows_stop: ContextVar[bool] = ContextVar("knows_stop", default=False)
"""True if the server that runs in this context tells its application when to leave."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_leaving: list[Callable[[], object]] = []
_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}


@contextmanager
def leaving_on_stop(leave: Callable[[], object]) -> Generator[None]:
    """Call `leave` in the event loop when SIGTERM or SIGINT comes while the block runs.

    The handler that the ASGI server has set in Python is called as well. Where there is none, in another thread than
    the main one, and under a server that tells the application itself, nothing changes.
    """
    if knows_stop.get() or current_thread() is not main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def told() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(leave)

    _leaving.append(told)
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and handler is not _tell:
            _handlers[number] = handler
            signal.signal(number, _tell)
    try:
        yield
    finally:
        _leaving.remove(told)
        for known, handler in _handlers.items():
            if not _leaving and signal.getsignal(known) is _tell:
                signal.signal(known, handler)


def _tell(number: int, frame: FrameType | None) -> None:
    for told in list(_leaving):
        told()
    _handlers[number](number, frame)
