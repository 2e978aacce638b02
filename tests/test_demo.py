"""The demo works and prints the output that the README shows."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from mcp_bindgen.emit import Request, targets
from tests.harness.commands import ROOT, SOURCE_ROOTS, execute
from tests.harness.pages import blocks, commands

FOLDERS = (*SOURCE_ROOTS, "schema", "docs", "examples")


@pytest.mark.full
def test_the_demo_regenerates_checks_and_reads_traffic(tmp_path: Path) -> None:
    """It runs in a copy: here it would repair the drift that other tests are to find."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    drifted = Path("generated", "mcp_bindgen", "v2025_11_25", "errors.py")
    with (tmp_path / drifted).open("a") as file:
        file.write("DRIFT = True\n")
    path = os.pathsep.join(str(tmp_path / name) for name in SOURCE_ROOTS)
    done = execute(sys.executable, "examples/demo.py", cwd=tmp_path, code=0, PYTHONPATH=path)
    assert (tmp_path / drifted).read_bytes() == (ROOT / drifted).read_bytes()
    shown = next(command for block in blocks(ROOT / "README.md") for command in commands(block))
    assert shown.line == "make demo"
    assert shown.prints(done.stdout.strip("\n"))
    assert done.stdout.count("in sync\n") == len(targets(Request()))
    assert len(re.findall(r"\d+ messages, each written back exactly as it came", done.stdout)) == 5
    assert "CallToolResult(content=[TextContent(" in done.stdout
