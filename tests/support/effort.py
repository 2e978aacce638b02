"""How much a run of the suite tries: `make test` a quick selection, `make test-all` everything, with more examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Amount = TypeVar("Amount")


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


def _full(case: Any) -> Any:
    if hasattr(case, "marks"):  # it has an id, by `pytest.param`
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.full))
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
