"""Tasks that run beside a block."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def beside() -> AsyncGenerator[TaskGroup]:
    """A group of tasks that are cancelled when the block ends; a lone error comes out of it as it is."""
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error = _single(group)
        raise error from error.__cause__


def _single(group: BaseExceptionGroup[Any]) -> BaseException:
    """The one exception of a group, so that callers can catch what they expect; groups of several stay groups."""
    if len(group.exceptions) != 1:
        return group
    only: Any = group.exceptions[0]
    return _single(cast(Any, only)) if isinstance(only, BaseExceptionGroup) else only
