"""Settings for conversations with foreign programs."""

from __future__ import annotations

import pytest

from tests.support.commands import execute
from tests.support.forks import PYTHON


@pytest.fixture(scope="session", autouse=True)
def programs_start_at_once() -> None:
    """Wait for the process that forks programs, as conversations are limited in time."""
    assert execute(PYTHON, "-c", "").returncode == 0
