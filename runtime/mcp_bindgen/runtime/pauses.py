"""Time limits that stop while a user is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio


class Pauses:
    """Time limits that stop while a user is asked, as a login takes minutes.

    Attributes:
        is_paused: True while a user is asked.
        changed: Called when a question to a user begins, and after its answer.
    """

    def __init__(self) -> None:
        self.changed: set[Callable[[], object]] = set()
        self._asked = 0
        self._left: dict[anyio.CancelScope, float] = {}

    @property
    def is_paused(self) -> bool:
        """True while a user is asked."""
        return self._asked > 0

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let no time pass for the limits that were set here."""
        self._asked += 1
        if self._asked == 1:
            now = anyio.current_time()
            for scope in self._left:
                self._left[scope], scope.deadline = scope.deadline - now, math.inf
            self._report()
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                now = anyio.current_time()
                for scope, left in self._left.items():
                    scope.deadline = now + left
                self._report()

    def _report(self) -> None:
        for call in list(self.changed):
            call()

    @contextmanager
    def move_on_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block after so many seconds, not counting questions to users; `None` for never."""
        with anyio.CancelScope() as scope:
            if seconds is not None:
                self._left[scope] = seconds
                if not self._asked:
                    scope.deadline = anyio.current_time() + seconds
            try:
                yield scope
            finally:
                self._left.pop(scope, None)

    def stop(self, scope: anyio.CancelScope) -> None:
        """Let a block go on for ever."""
        self._left.pop(scope, None)
        scope.deadline = math.inf

    @contextmanager
    def fail_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block as `move_on_after` does; raise `TimeoutError` then."""
        with self.move_on_after(seconds) as scope:
            yield scope
        if scope.cancelled_caught:
            raise TimeoutError
