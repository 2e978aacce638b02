"""Reports of type checkers to users: correct code passes, and each mistake is reported on its line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.harness.type_checkers import strict_cache

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "tests" / "typing" / name for name in ("good.py", "everyday.py", "bad.py", "deprecated.py")]
SOURCES = [ROOT / name for name in ("generator", "runtime", "generated")]
MISTAKE = "# error: "


def marked() -> dict[Path, set[int]]:
    """Return the lines of each file that a type checker should report."""
    found = {file: lines_with(MISTAKE, file) for file in FILES}
    return {file: lines for file, lines in found.items() if lines}


def lines_with(mark: str, file: Path) -> set[int]:
    return {number for number, line in enumerate(file.read_text("utf-8").splitlines(), 1) if mark in line}


def run(*command: str, **environment: str) -> str:
    """Return the output of a type checker."""
    words = [sys.executable, "-m", *command]
    ran = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr + ran.stdout
    return ran.stdout


def mypy(cache: Path) -> dict[Path, set[int]]:
    """Return the lines of each file that `mypy --strict` reports."""
    options = [
        "--strict",
        "--enable-error-code=deprecated",
        "--config-file=",
        "--explicit-package-bases",
        "--no-error-summary",
        "--hide-error-context",
    ]
    printed = run("mypy", *options, strict_cache(cache), *map(str, FILES), MYPYPATH=os.pathsep.join(map(str, SOURCES)))
    found: defaultdict[Path, set[int]] = defaultdict(set)
    for line in printed.splitlines():
        report = re.fullmatch(r"(.+?):(\d+): (error|note): .*", line)
        assert report is not None, line
        if report[3] == "error":
            found[ROOT / report[1]].add(int(report[2]))
    return found


def pyright(folder: Path) -> dict[Path, set[int]]:
    """Return the lines of each file that `pyright` reports in its strict mode."""
    config = {
        "include": [os.path.relpath(file, folder) for file in FILES],
        "extraPaths": [os.path.relpath(source, folder) for source in SOURCES],
        "typeCheckingMode": "strict",
    }
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps(config), "utf-8")
    output = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(project)))
    assert output["summary"]["filesAnalyzed"] == len(FILES)
    found: defaultdict[Path, set[int]] = defaultdict(set)
    for report in output["generalDiagnostics"]:
        found[Path(report["file"])].add(report["range"]["start"]["line"] + 1)
    return found


def test_mistakes_are_marked_in_bad_code_only() -> None:
    counts = {file.name: len(lines) for file, lines in marked().items()}
    assert counts.keys() == {"bad.py", "deprecated.py"}
    assert counts["bad.py"] >= 40
    assert counts["deprecated.py"] >= 11


@pytest.mark.full
def test_mypy_reports_the_mistakes_and_nothing_else(tmp_path: Path) -> None:
    assert mypy(tmp_path / "cache") == marked()


@pytest.mark.full
def test_pyright_reports_the_mistakes_and_nothing_else(tmp_path: Path) -> None:
    assert pyright(tmp_path) == marked()
