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
        timeout: Seconds to wait for a response or for progress; `None` for no limit. The time stops while a client runs
            handlers of the server's requests, because a person may be answering.
        total_timeout: Seconds to wait in all; `None` for no limit.
        on_progress: Called with the params of each progress notification, in order; the request then asks for
            progress. An `async def` callback is awaited before the request returns; an error and `total_timeout`
            cancel it.
    """

    timeout: float | None = 60.0
    total_timeout: float | None = None
    on_progress: Progress | None = None


@dataclass(frozen=True)
class Limits:
    """Limits of one connection, for messages of the peer.

    Messages beyond `in_flight` and `max_unsent_bytes` wait. Responses, cancellations, progress and pings are read all
    the same, so two busy sides never wait for each other. If too many messages wait, requests are refused and
    notifications dropped. Reading stops while the peer leaves responses unread (backpressure); after `write_timeout`
    the connection is closed.

    Attributes:
        in_flight: Requests and notifications whose handlers are waiting for something.
        waiting: Messages that wait for their turn.
        waiting_bytes: Bytes of these messages.
        max_unsent_bytes: Bytes of responses that the peer has not read yet.
        write_timeout: Seconds that a peer may leave responses unread before the connection is closed; `None` for no
            limit.
        batch_members: Messages in one batch (2025-03-26); a larger batch is refused as a whole.
        threads: Threads for blocking handlers; a cancelled handler keeps its thread until it ends. Over HTTP the limit
            holds for each user, if users are known.
    """

    in_flight: int = 256
    waiting: int = 4096
    waiting_bytes: int = 4 * 1024 * 1024
    max_unsent_bytes: int = 1024 * 1024
    write_timeout: float | None = 30.0
    batch_members: int = 1000
    threads: int = 32
