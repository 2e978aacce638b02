"""Checks of the suite itself: file names in docs/testing.md, and signals in child processes."""

from __future__ import annotations

import os
import re
import signal
import sys
import tomllib
from pathlib import Path

import pytest

from tests.harness.commands import ROOT, execute
from tests.mutants.__main__ import by_hand

PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")
REPORT = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"


def test_the_page_names_files_that_exist() -> None:
    named = set(re.findall(r"(?<![\w/.])((?:[\w.]+/)*[\w.]+\.(?:py|toml))\b", PAGE)) - {"server.py"}
    assert len(named) > 10
    missing = {name for name in named if not any((ROOT / folder / name).is_file() for folder in ("", "tests/harness"))}
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


@pytest.mark.parametrize(
    ("installed", "newer"), [(["3.11.9", "3.9.1", "3.12.9", "3.13.0", "3.14-dev"], ["3.13.0", "3.12.9"]), ([], [])]
)
def test_ci_runs_tests_on_each_newer_python_and_says_so_if_there_is_none(
    tmp_path: Path, installed: list[str], newer: list[str]
) -> None:
    for name in ("make", "apt-get"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (tmp_path / name).chmod(0o755)
    for version in installed:
        (tmp_path / "versions" / version).mkdir(parents=True)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = execute("bash", ROOT / ".ci" / "run", code=0, PATH=path, PYENV_ROOT=str(tmp_path))
    ran = [line for line in done.stdout.splitlines() if line.startswith("make test ")]
    parts = ["", "tests/generated tests/runtime"]
    assert ran == [
        f"make test PYTHON={tmp_path}/versions/{one}/bin/python VENV=build/python-{one} TESTS={tests}"
        for one, tests in zip(newer, parts, strict=False)
    ]
    assert ("SKIPPED: make test on a newer Python" in done.stderr) == (not newer)
