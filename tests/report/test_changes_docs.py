"""The changelogs in `docs/changes/` equal the output of `diff`, and the index lists all of them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from mcp_bindgen.spec import Store
from tests.harness.commands import ROOT, inside

CHANGES = ROOT / "docs" / "changes"
STEPS = list(pairwise(Store().pins))


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), STEPS)
def test_a_changelog_equals_the_output_of_diff(old: str, new: str, tmp_path: Path) -> None:
    fresh = tmp_path / f"{new}.md"
    done = inside("diff", old, new, "--format", "markdown", "--out", fresh)
    assert (done.returncode, done.stderr) == (0, "")
    committed = CHANGES / fresh.name
    fix = f"run: mcp-bindgen diff {old} {new} --format markdown --out docs/changes/{new}.md"
    assert committed.exists(), fix
    assert committed.read_text("utf-8") == fresh.read_text("utf-8"), fix


def test_the_folder_has_only_changelogs_and_the_index_lists_all() -> None:
    names = [f"{new}.md" for _, new in STEPS]
    assert sorted(path.name for path in CHANGES.iterdir()) == sorted([*names, "README.md"])
    index = (CHANGES / "README.md").read_text("utf-8")
    assert re.findall(r"\]\(([\w.-]+\.md)\)", index) == names
    assert all(f"| {old} | [{new}]({new}.md) |" in index for old, new in STEPS)
