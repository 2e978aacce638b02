"""Run each test of this folder that has the parameter `revision` in every revision."""

from __future__ import annotations

import pytest

from tests.harness.checked_connections import STATEFUL, STATELESS


@pytest.fixture(params=[*STATEFUL, STATELESS])
def revision(request: pytest.FixtureRequest) -> str:
    """Return one of the revisions."""
    found: str = request.param
    return found
