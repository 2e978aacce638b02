"""Pages that lead a person through files and commands: each command prints the output that the page shows."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mcp_bindgen.cli.app import app
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


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
IMPORT = re.compile(r"^ *(from mcp_bindgen(?:\.\w+)* import (?:\([^)]*\)|[\w, ]+))", re.M)
FENCED = re.compile(r"^( *)```python\n(.*?)^ *```$", re.M | re.S)
OF_THE_READER = {"mcp_bindgen.vdraft"}
"""Modules that exist when a reader has followed the page."""


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each command line of a page that begins with `mcp-bindgen`, without pipes and comments."""
    for line in re.findall(r"^(?: {4,}|\$ | +\$ )(mcp-bindgen .*?)(?:\s[|>&].*| #.*)?$", text, re.M):
        yield shlex.split(line.rstrip("\\"), comments=True)[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_modules_and_options_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for _, block in FENCED.findall(text):
        ast.parse(textwrap.dedent(block))
    for found in IMPORT.findall(text):
        (statement,) = ast.parse(found).body
        assert isinstance(statement, ast.ImportFrom)
        if statement.module not in OF_THE_READER:
            module = importlib.import_module(str(statement.module))
            for name in statement.names:
                assert hasattr(module, name.name) or importlib.import_module(f"{statement.module}.{name.name}"), found
    for words in command_lines(text):
        command: Any = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", ()):
            command = command.get_command(None, words.pop(0))
        taken = [command, *getattr(command, "commands", {}).values()]  # a group may have a command without a name
        if any(one.context_settings.get("ignore_unknown_options") for one in taken):
            continue  # the options of servers follow those of the command
        params = [param for one in taken for param in one.params]
        known = {option for param in params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
        own = words[: words.index("--")] if "--" in words else words
        unknown = {word.partition("=")[0] for word in own if word.startswith("--")} - known
        assert not unknown, f"{command.name}: {', '.join(sorted(unknown))}"
