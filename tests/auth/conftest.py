"""Fixtures for tests of authorization: honest servers that run during an asynchronous test, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace

import pytest

from mcp_bindgen.auth.client import tokens
from tests.harness.authorization_world import World, world


@pytest.fixture
def given() -> AbstractAsyncContextManager[World]:
    return world()


@pytest.fixture
def other() -> AbstractAsyncContextManager[World]:
    return world()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that advances the clock of tokens by some seconds."""
    passed: list[float] = []
    monkeypatch.setattr(tokens, "time", SimpleNamespace(time=lambda: time.time() + sum(passed)))
    return passed.append
