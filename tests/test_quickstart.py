"""Follow the README like a new user: three commands print exactly the shown output.

`python -m tests.harness.quickstart` checks that they take less than two minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.pages import Command
from tests.harness.quickstart import COMMANDS, README, first_program, steps, take


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python compile only imported modules; pip would compile all modules."""
    monkeypatch.setenv("PIP_NO_COMPILE", "1")


@pytest.mark.full
def test_programs_and_commands_of_the_readme_run_in_an_empty_environment(tmp_path: Path, own_wheel: Path) -> None:
    """The first program needs only what is installed above it, and the commands print the shown output.

    The installations need the package index. They share an environment, which takes seconds to make.
    """
    install, program = first_program(README)
    (tmp_path / "server.py").write_text(program, "utf-8")
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }
    (tmp_path / "greeting").write_text(json.dumps(greeting) + "\n", "utf-8")
    served = "timeout -s INT 10 python ../server.py --http 127.0.0.1:0 2>&1 || true"
    programs = [Command("python ../server.py < ../greeting"), Command(served)]
    _, answer, http, *path = take([install, *programs, *steps(README)], own_wheel, tmp_path)
    assert json.loads(answer.printed)["result"]["serverInfo"]["name"] == "weather"
    assert http.printed.startswith("listening on http://127.0.0.1:")
    assert len(path) <= COMMANDS
    assert path[0].command.is_installation
    assert "tools/call" in path[-1].command.line
    assert path[-1].printed
    for taken in path:
        assert taken.as_shown, f"$ {taken.command.line}\n{taken.printed}"
