"""Settings for the whole suite: how much a run tries and at once, garbage, signals, and no revisions of a user.

`make test` runs the Hypothesis profile `quick`, `make test-all` the profile `full`.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

for name in ("quick", "full"):
    settings.register_profile(name, deadline=None)  # a busy machine is no failure
settings.load_profile("quick")
os.environ["MCP_BINDGEN_HOME"] = str(Path(__file__).parent / "no-home")  # what somebody imported does not count
gc.set_threshold(20_000, 20, 20)
"""Collect garbage less often than by default, which looks through all that thousands of tests keep, and is a tenth of
the whole run. What must be gone is collected by the tests that say so, and by pytest at the end.
"""


def pytest_configure() -> None:
    """Restore SIGINT: a shell starts background jobs with SIGINT ignored, and the processes of tests inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` takes: three for two processors, as tests wait for a third of their time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not every system has it
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    return processors + (processors + 1) // 2
