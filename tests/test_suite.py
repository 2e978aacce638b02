"""Checks of the suite itself: file names in docs/testing.md, and signals in child processes."""

from __future__ import annotations

import re
import signal
import sys
import tomllib

import pytest

from tests.mutants.__main__ import by_hand
from tests.support.commands import ROOT, execute

PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")
REPORT = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"


def test_the_page_names_files_that_exist() -> None:
    named = set(re.findall(r"(?<![\w/.])((?:[\w.]+/)*[\w.]+\.(?:py|toml))\b", PAGE)) - {"server.py"}
    assert len(named) > 10
    missing = {name for name in named if not any((ROOT / folder / name).is_file() for folder in ("", "tests/support"))}
    assert not missing


def test_handwritten_mutations_match_the_current_code_and_tests() -> None:
    """`make mutants` reads the same file, and stops at a mutation whose original line has changed."""
    bugs = tomllib.loads((ROOT / "tests" / "mutants" / "bugs.toml").read_text("utf-8"))
    assert len(by_hand(bugs)) == len(bugs["bug"])
    assert [name for names in bugs["tests"].values() for name in names if not (ROOT / "tests" / name).exists()] == []


@pytest.mark.full
def test_processes_of_tests_can_be_interrupted() -> None:
    """Run in the background, where a shell lets jobs inherit an ignored SIGINT."""
    test = f"{__file__}::test_a_process_takes_sigint"
    done = execute("sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-m", "", test, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_a_process_takes_sigint() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert execute(sys.executable, "-c", REPORT).stdout.strip() == signal.default_int_handler.__name__
