"""The suite itself: what docs/testing.md says of it, and how the processes that it starts take signals."""

from __future__ import annotations

import re
import signal
import sys

import pytest

from tests.support.commands import ROOT, execute

PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")
REPORT = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"


def test_the_page_names_every_module_of_tests_and_nothing_else() -> None:
    folder = ROOT / "tests"
    found = [path.relative_to(folder) for path in folder.rglob("test_*.py")]
    modules = {path.as_posix() for path in found if "node_modules" not in path.parts}
    assert set(re.findall(r"`([\w/]*test_\w+\.py)`", PAGE)) == modules


@pytest.mark.full
def test_processes_of_tests_can_be_interrupted() -> None:
    """Also where the suite was started in the background, whose jobs inherit an ignored SIGINT."""
    test = f"{__file__}::test_a_process_takes_sigint"
    done = execute("sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-m", "", test, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_a_process_takes_sigint() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert execute(sys.executable, "-c", REPORT).stdout.strip() == signal.default_int_handler.__name__
