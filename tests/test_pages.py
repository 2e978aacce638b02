"""Pages that lead a person through files and commands: each command prints the output that the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.pages import Command, File, follow, steps
from tests.support.processes import free_port

PATHS = ["index.md", "tutorials/grow-a-server.md"]


@pytest.mark.full
@pytest.mark.parametrize("name", PATHS)
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path) -> None:
    follow(ROOT / "docs" / name, tmp_path, {"8000": free_port()})


def test_steps_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Save as `a.py`:\n\n```python\nx = 1\n```\n\n```python\ny\n```\n```console\n$ one\n1\n...\n$ two\n```\n"
    )
    assert list(steps(page)) == [File("a.py", "x = 1\n"), Command("one", "1\n..."), Command("two", "")]


def test_a_command_that_prints_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; echo two\none\n...\n$ echo one\ntwo\n```\n")
    with pytest.raises(AssertionError, match="echo one\none"):
        follow(page, tmp_path, {})
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(AssertionError, match="exit code 1"):
        follow(page, tmp_path, {})
