"""Options of requests, and limits of one connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Progress = Callable[[Any], object]
"""A progress callback, `def` or `async def`."""


@dataclass(frozen=True)
class Options:
    """Options of a request.

    Attributes:
        timeout: Seconds to wait for an answer or for progress; `None` waits for ever. They do not run while a client
            is at work on what the server has asked meanwhile, because a person may be answering.
        total_timeout: Seconds to wait in all, whatever happens; `None` sets no limit.
        on_progress: Called with the params of each progress notification, in order; asking for progress is implied. An
            `async def` callback is awaited, before the request returns its result; an error and `total_timeout` cancel
            it.
    """

    timeout: float | None = 60.0
    total_timeout: float | None = None
    on_progress: Progress | None = None


@dataclass(frozen=True)
class Limits:
    """How much of the other side's one connection takes at once.

    Messages beyond `at_work` and `unread` wait for their turn; while they do, answers, cancellations, progress and
    pings are still read, so two sides that both have much to say cannot wait for each other. Where even those that wait
    are too many, requests are refused and notifications dropped; a side that does not read its answers is not read
    either, and after `patience` the connection is closed.

    Attributes:
        at_work: Requests and notifications whose handlers wait for something.
        waiting: Messages that wait for their turn.
        waiting_bytes: The size of those messages.
        unread: The size of answers that the other side has not read yet, in bytes.
        patience: Seconds without reading, because the other side does not read, after which the connection is closed;
            `None` waits for ever.
        batch_members: Messages in one batch (2025-03-26); a larger batch is refused as a whole.
        threads: Threads for handlers that block; one that is given up keeps its thread until it ends. Over HTTP this
            is for each user, if users are known, whatever sessions and requests it has.
    """

    at_work: int = 256
    waiting: int = 4096
    waiting_bytes: int = 4 * 1024 * 1024
    unread: int = 1024 * 1024
    patience: float | None = 30.0
    batch_members: int = 1000
    threads: int = 32
