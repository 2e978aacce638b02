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
        timeout: Seconds to wait for an answer or for progress; `None` waits for ever.
        total_timeout: Seconds to wait in all, however much progress there is.
        on_progress: Called with the params of each progress notification; asking for progress is implied.
    """

    timeout: float | None = None
    total_timeout: float | None = None
    on_progress: Progress | None = None
