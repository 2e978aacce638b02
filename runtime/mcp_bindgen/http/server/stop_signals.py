"""Signals to stop the process. ASGI tells an application only after its last response, which a stream delays."""

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
"""True if the server in this context calls `leave` of its application itself."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_leaving: list[Callable[[], object]] = []
_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}


@contextmanager
def leaving_on_stop(leave: Callable[[], object]) -> Generator[None]:
    """Call `leave` in the event loop when SIGTERM or SIGINT arrives while the block runs.

    The Python handler of the ASGI server is called as well. Without such a handler, outside of the main thread, and
    where `knows_stop` is set, nothing changes.
    """
    if knows_stop.get() or current_thread() is not main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def call_leave() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(leave)

    _leaving.append(call_leave)
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and handler is not _handle:
            _handlers[number] = handler
            signal.signal(number, _handle)
    try:
        yield
    finally:
        _leaving.remove(call_leave)
        for known, handler in _handlers.items():
            if not _leaving and signal.getsignal(known) is _handle:
                signal.signal(known, handler)


def _handle(number: int, frame: FrameType | None) -> None:
    for leave in list(_leaving):
        leave()
    _handlers[number](number, frame)
