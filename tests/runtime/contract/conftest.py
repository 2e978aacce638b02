"""Each test of this folder that takes a revision runs in all of them."""

from __future__ import annotations

import pytest

from tests.support.checked_connections import STATEFUL, STATELESS


@pytest.fixture(params=[*STATEFUL, STATELESS])
def revision(request: pytest.FixtureRequest) -> str:
    """A revision."""
    found: str = request.param
    return found
