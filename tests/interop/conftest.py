"""Fixtures of conversations with third-party programs."""

from __future__ import annotations

import pytest

from tests.harness.commands import execute
from tests.harness.forks import PYTHON


@pytest.fixture(scope="session", autouse=True)
def programs_start_at_once() -> None:
    """Wait for the process that forks programs, because conversations have a time limit."""
    assert execute(PYTHON, "-c", "").returncode == 0
