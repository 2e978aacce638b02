"""What the tests of authorization share: honest servers, which run while an asynchronous test does."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from tests.support.authorization_world import World, world


@pytest.fixture
def given() -> AbstractAsyncContextManager[World]:
    return world()


@pytest.fixture
def other() -> AbstractAsyncContextManager[World]:
    return world()
