"""Settings for the whole suite: how many examples a run tries, and signals as in a terminal.

`make test` runs the Hypothesis profile `quick`, `make test-all` the profile `full`.
"""

from __future__ import annotations

import signal

from hypothesis import settings

for name in ("quick", "full"):
    settings.register_profile(name, deadline=None)  # a busy machine is no failure
settings.load_profile("quick")


def pytest_configure() -> None:
    """Restore SIGINT: a shell starts background jobs with SIGINT ignored, and the processes of tests inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
