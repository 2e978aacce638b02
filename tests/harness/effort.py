"""Amount of testing in a run: `make test` runs a quick selection, `make test-all` everything with more examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Amount = TypeVar("Amount")

HANG_SECONDS = 180.0
"""Seconds after which a test counts as hanging; every test is faster, even on a busy machine."""


def examples(quick: int, deep: int) -> int:
    """Return a number of examples.

    Args:
        quick: The number for `make test`.
        deep: The number for the Hypothesis profile `deep` (`tests/conftest.py`); `make test-all` uses a quarter of it.
    """
    return {"quick": quick, "full": max(quick, deep // 4)}.get(settings.get_current_profile_name(), deep)


def selection(quick: Amount, full: Amount) -> Amount:
    """Return `quick` under `make test`, and `full` under `make test-all`."""
    return quick if settings.get_current_profile_name() == "quick" else full


def cases(every: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Mark the parameters of a test that only `make test-all` runs.

    Args:
        every: All parameters, as tuples if the test takes several arguments.
        quick: The parameters that `make test` also runs.
    """
    return [case if case in quick else _full(case) for case in every]


def rows(table: Mapping[str, Iterable[Any]]) -> list[tuple[Any, str]]:
    """Return each value of a table with its key, as the parameters of a test."""
    return [(value, name) for name, values in table.items() for value in values]


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., Any]], Any]:
    """Run all rows of a table in one test, which reports the errors of all failing rows.

    Use it in place of `parametrize` if a row runs faster than pytest collects a test. The rows share fixtures.

    Args:
        names: Names of the arguments that a row provides; a single name if rows are plain values.
        rows: The rows.
    """
    named = [{names: row} if isinstance(names, str) else dict(zip(names, row, strict=True)) for row in rows]
    assert named, "a table without rows tests nothing"

    def decorate(test: Callable[..., Any]) -> Any:
        known = signature(test)
        kept = [one for name, one in known.parameters.items() if name not in named[0]]

        @contextmanager
        def collected(row: dict[str, Any], failures: list[BaseException]) -> Iterator[None]:
            try:
                yield
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(f"with {str(row)[:1000]}")
                failures.append(error)
            if failures and row is named[-1]:
                raise failures[0] if len(failures) == 1 else BaseExceptionGroup(f"{len(failures)} rows fail", failures)

        def run(*values: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            fixtures |= {one.name: value for one, value in zip(kept, values, strict=False)}
            for row in named:
                with collected(row, failures):
                    test(**fixtures, **row)

        async def run_coroutine(*values: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            fixtures |= {one.name: value for one, value in zip(kept, values, strict=False)}
            for row in named:
                with collected(row, failures):
                    await test(**fixtures, **row)

        made: Any = wraps(test)(run_coroutine if iscoroutinefunction(test) else run)
        made.__signature__ = known.replace(parameters=kept)
        return made

    return decorate


def _full(case: Any) -> Any:
    if hasattr(case, "marks"):  # it has an id from `pytest.param`
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.full))
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
