"""What a newcomer runs first works, and says what the README says."""

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
    assert done.stdout.count("in sync\n") == 9  # revisions, extensions and the bridges
    assert len(re.findall(r"\d+ messages, each written back exactly as it came", done.stdout)) == 5
    assert "CallToolResult(content=[TextContent(" in done.stdout


@pytest.mark.parametrize(
    ("page", "programs"), [("README.md", 3), ("docs/tutorials/bindings.md", 3), ("docs/reference/versions.md", 1)]
)
def test_the_programs_of_a_page_run(page: str, programs: int) -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    examples = [block for block in blocks if re.search(r"^    (import|from) ", block, re.MULTILINE)]
    assert len(examples) == programs
    for block in examples:
        code = "\n".join(line.removeprefix("    ") for line in block.splitlines())
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
