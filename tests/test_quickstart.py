"""What the README promises to somebody new: three commands, under two minutes, and just that output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.pages import Command
from tests.support.quickstart import COMMANDS, README, SECONDS, Taken, first_program, steps, take, wheel


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> list[Taken]:
    """The newcomer's path, taken once; it needs the package index."""
    folder = tmp_path_factory.mktemp("newcomer")
    return take(steps(README), wheel(folder), folder)


@pytest.mark.full
def test_from_nothing_to_the_first_answer_it_takes_three_commands_and_less_than_two_minutes(path: list[Taken]) -> None:
    assert len(path) <= COMMANDS
    assert path[0].command.is_installation
    assert "tools/call" in path[-1].command.line
    assert path[-1].printed
    assert sum(taken.seconds for taken in path) < SECONDS


@pytest.mark.full
def test_the_commands_print_what_the_readme_shows(path: list[Taken]) -> None:
    for taken in path:
        assert taken.as_shown, f"$ {taken.command.line}\n{taken.printed}"


@pytest.mark.full
def test_the_first_program_needs_only_what_is_installed_above_it(tmp_path: Path) -> None:
    install, program = first_program(README)
    (tmp_path / "home").mkdir()
    (tmp_path / "server.py").write_text(program, "utf-8")
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }
    (tmp_path / "greeting").write_text(json.dumps(greeting) + "\n", "utf-8")
    served = "timeout -s INT 10 python ../../server.py --http 127.0.0.1:0 2>&1 || true"
    commands = [Command("python ../../server.py < ../../greeting"), Command(served)]
    _, answer, http = take([install, *commands], wheel(tmp_path / "wheel"), tmp_path / "home")
    assert json.loads(answer.printed)["result"]["serverInfo"]["name"] == "weather"
    assert http.printed.startswith("listening on http://127.0.0.1:")
