"""Exception for a failed trial."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class Violation(AssertionError):
    """A side sent an invalid message, left a request unanswered, or leaked memory, threads, files or tasks."""


@contextmanager
def plainly() -> Generator[None]:
    """Replace a group of exceptions by its first violation."""
    try:
        yield
    except BaseExceptionGroup as group:
        matching, rest = group.split(Violation)
        error: BaseException | None = matching or rest
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert error is not None
        raise error from None
