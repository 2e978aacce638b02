"""The demo works and prints the output that the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.full
def test_the_demo_regenerates_checks_and_reads_traffic() -> None:
    done = subprocess.run([sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("in sync\n") == 9  # revisions, extensions and bridges
    assert len(re.findall(r"\d+ messages, each written back exactly as it came", done.stdout)) == 5
    assert "CallToolResult(content=[TextContent(" in done.stdout
