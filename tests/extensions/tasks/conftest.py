"""Fixtures for the tests of tasks."""

from __future__ import annotations

import pytest

from mcp_bindgen.runtime.session.targets import Served
from tests.extensions.tasks.jobs import jobs


@pytest.fixture
def servers() -> list[Served]:
    return [jobs().served()]
