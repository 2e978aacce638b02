"""Debug mode: report coroutine functions that block the event loop."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.routing import place_of

T = TypeVar("T")

BLOCKING_SECONDS = 0.1
"""Seconds without `await` after which debug mode reports a coroutine function."""


@types.coroutine
def watched(work: Coroutine[Any, Any, T], function: Callable[..., Any]) -> Generator[Any, Any, T]:
    """Await a function, and log its place if it blocks the event loop."""
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        begun = monotonic()
        try:
            trap = step()
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            if (took := monotonic() - begun) > BLOCKING_SECONDS:
                advice = "%s: %s blocked the event loop for %.1f s; write def (it runs in a thread), or await the call"
                log.warning(advice, place_of(function), function.__name__, took)
        try:
            step = partial(work.send, (yield trap))
        except BaseException as error:  # cancellation is delivered to the function like any other error
            step = partial(work.throw, error)
