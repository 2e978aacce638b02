"""Share a folder among the processes of a test run, in which one of them makes a thing for all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the folder for temporary files of all processes of this run."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Keep other processes out while one makes `path`; give whether it is still to be made.

    The body has to create `path` as its last step.
    """
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not path.exists()
