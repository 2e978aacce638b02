"""What goes wrong in a trial, as one plain exception."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class Violation(AssertionError):
    """A side said what it must not say, owes an answer, or holds on to what it should have let go."""


@contextmanager
def plainly() -> Generator[None]:
    """Raise the first violation out of groups of exceptions."""
    try:
        yield
    except BaseExceptionGroup as group:
        matching, rest = group.split(Violation)
        error: BaseException | None = matching or rest
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert error is not None
        raise error from None
