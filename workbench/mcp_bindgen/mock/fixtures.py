"""Plugin of pytest with the fixtures `mcp_mock` and `mcp_replay`.

Enable it in `conftest.py`: `pytest_plugins = ["mcp_bindgen.mock.fixtures"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .running import MockServer, ReplayServer


@pytest.fixture
def mcp_mock() -> Iterator[Callable[..., MockServer]]:
    """Return a function that makes a `MockServer`, with the arguments of that class; it stops after the test."""
    with ExitStack() as stack:

        def make(*arguments: Any, **options: Any) -> MockServer:
            return stack.enter_context(MockServer(*arguments, **options))

        yield make


@pytest.fixture
def mcp_replay() -> Callable[..., ReplayServer]:
    """Return a function that makes a `ReplayServer` of a recording."""
    return ReplayServer
