"""The commands of docs/how-to/upgrading.md run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.commands import ROOT, inside

PAGE = (ROOT / "docs" / "how-to" / "upgrading.md").read_text("utf-8")
COMMANDS = re.findall(r"^    mcp-bindgen (.+)$", PAGE, re.MULTILINE)


@pytest.mark.full
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert inside("scaffold", "server", "weather", "--revision", "2025-11-25").returncode == 0
    shutil.copytree("weather/src", "src")
    done = {command: inside(*shlex.split(command)) for command in COMMANDS}
    assert {command: one.stderr for command, one in done.items() if one.returncode != 0} == {}
    assert Path("changes.html").read_text("utf-8").startswith("<!doctype html>")
    for file in ("src/weather/server.py", "weather/src/weather/server.py"):
        assert "v2026_07_28" in Path(file).read_text("utf-8")
    assert "tools/call" in done["methods 2026-07-28"].stdout
    assert "src/weather/server.py" in done["migrate 2025-11-25 2026-07-28 src"].stdout


def test_the_page_has_each_command() -> None:
    assert {"diff", "history", "methods", "migrate", "schema", "show", "upgrade"} == {
        one.split()[0] for one in COMMANDS
    }
