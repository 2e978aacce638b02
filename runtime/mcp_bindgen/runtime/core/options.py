"""Define how requests are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Progress = Callable[[Any], object]


@dataclass(frozen=True)
class Options:
    """Options of a request.

    Attributes:
        timeout: Seconds to wait for an answer or for progress; `None` waits for ever. They do not run while a client
            is at work on what the server has asked meanwhile, because a person may be answering.
        total_timeout: Seconds to wait in all, whatever happens; `None` sets no limit.
        on_progress: Called with the params of each progress notification; asking for progress is implied.
    """

    timeout: float | None = 60.0
    total_timeout: float | None = None
    on_progress: Progress | None = None
