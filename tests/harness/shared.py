"""Share a folder among the processes of a test run; one process creates its content for all."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all processes of this run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Hold a lock while one process creates `path`; yield True if it does not exist yet.

    The body must create `path` as its last step.
    """
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not path.exists()


def filled(factory: pytest.TempPathFactory, fill: Callable[[Path], object], name: str = "") -> Path:
    """Return a folder that all processes of this run share; the first process that needs it calls `fill` with it.

    The folder is named after the function and its module if it gets no name: other modules may have such a function.
    """
    folder = shared_folder(factory) / (name or f"{fill.__module__}.{fill.__name__}")
    complete = folder.with_name(f"{folder.name}.complete")
    with alone(complete) as is_new:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)  # of an attempt that failed
            folder.mkdir()
            fill(folder)
            complete.touch()
    return folder
