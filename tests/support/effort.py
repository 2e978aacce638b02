"""How much a run of the suite tries: `make test` a quick selection, `make test-all` everything, with more examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Amount = TypeVar("Amount")


def examples(quick: Amount, deep: Amount) -> Amount:
    """Choose a number of examples, or the examples themselves where a quick selection lies in the deep one.

    Args:
        quick: What `make test` tries.
        deep: What the Hypothesis profile `deep` tries (`tests/conftest.py`).
            `make test-all` tries a quarter of a number.
    """
    profile = settings.get_current_profile_name()
    if profile == "full" and isinstance(quick, int) and isinstance(deep, int):
        return max(quick, deep // 4)  # type: ignore[return-value]
    return quick if profile == "quick" else deep


def cases(every: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Mark the parameters of a test that only `make test-all` runs.

    Args:
        every: All parameters, each a tuple where the test takes several arguments.
        quick: Those that `make test` runs too.
    """
    return [case if case in quick else _full(case) for case in every]


def _full(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
