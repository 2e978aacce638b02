"""Fixtures for the tests of tasks."""

from __future__ import annotations

import pytest

from mcp_bindgen.runtime.session.server import Server
from tests.extensions.tasks.jobs import jobs


@pytest.fixture
def servers() -> list[Server]:
    return jobs().servers()
