"""How much a run of the suite tries: `make test` a quick selection, `make test-all` everything, with more examples."""

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
"""Time after which a test hangs: no test of this suite takes as long, on a machine however busy."""


def examples(quick: int, deep: int) -> int:
    """Choose a number of examples.

    Args:
        quick: What `make test` tries.
        deep: What the Hypothesis profile `deep` tries (`tests/conftest.py`); `make test-all` tries a quarter of it.
    """
    return {"quick": quick, "full": max(quick, deep // 4)}.get(settings.get_current_profile_name(), deep)


def selection(quick: Amount, full: Amount) -> Amount:
    """Choose what `make test` tries, or what `make test-all` tries."""
    return quick if settings.get_current_profile_name() == "quick" else full


def cases(every: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Mark the parameters of a test that only `make test-all` runs.

    Args:
        every: All parameters, each a tuple where the test takes several arguments.
        quick: Those that `make test` runs too.
    """
    return [case if case in quick else _full(case) for case in every]


def rows(table: Mapping[str, Iterable[Any]]) -> list[tuple[Any, str]]:
    """Return each value of a table with what it stands under, as the parameters of a test."""
    return [(value, name) for name, values in table.items() for value in values]


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make one test of all rows of a table, which fails with the errors of all its rows.

    It stands for `parametrize` where a row takes less time than to collect a test. The rows share the fixtures.

    Args:
        names: The arguments of the test that a row has; one name for rows that are the values themselves.
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
    if hasattr(case, "marks"):  # it has an id, by `pytest.param`
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.full))
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
