"""`mcp-bindgen bridges`: the conversion steps in words, and the features of a class that peers will not receive."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from mcp_bindgen.spec import Store
from tests.harness.commands import ROOT, answered, complaint, execute, inside
from tests.harness.forks import PYTHON

WEATHER = """
from mcp_bindgen.v2025_11_25 import Server

class Weather(Server):
    def list_tools(self, params, ctx): ...
    def get_prompt(self, params, ctx): ...
"""

RUN = "import sys; from mcp_bindgen.cli import main; main()"


def test_every_step_is_printed() -> None:
    printed = answered("bridges")
    revisions = list(Store().pins)
    for old, new in pairwise(revisions):
        assert f"{old} -> {new}\n" in printed
        assert f"{new} -> {old}\n" in printed
    assert (
        "PromptMessage.content.AudioContent, CallToolResult.content.AudioContent: MCP 2024-11-05 has no audio: "
        "it is sent as an embedded resource with its data and media type "
    ) in " ".join(printed.split())


def test_steps_and_missing_features_are_printed_as_json() -> None:
    steps = {one["step"]: one["sections"] for one in json.loads(inside("bridges", "--json").stdout)}
    first, *_ = steps["2025-03-26 -> 2024-11-05"]
    assert first["title"] == "Converted with a loss"
    assert "PromptMessage.content.AudioContent" in first["entries"][0]["places"]
    assert first["entries"][0]["reason"].startswith("MCP 2024-11-05 has no audio")
    told = json.loads(inside("bridges", "mcp_bindgen.v2025_11_25:Server", "--json").stdout)
    assert list(told) == list(Store().pins)
    assert inside("bridges", "--missing", "--json").returncode == 2
    assert "add --missing" in complaint("bridges", "--append")


@pytest.mark.full
def test_the_rules_of_another_schema_folder_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "schema"
    shutil.copytree(ROOT / "schema", folder)
    assert inside("bridges", "--missing", "--folder", folder).stderr == "no rule is missing\n"
    rules = (folder / "bridges.toml").read_text("utf-8")
    (folder / "bridges.toml").write_text(rules[: rules.rindex('["2026-07-28 -> 2025-11-25"]')], "utf-8")
    done = inside("bridges", "--missing", "--folder", folder, code=0)
    assert done.stdout.startswith(f'# for {folder / "bridges.toml"}\n["2026-07-28 -> 2025-11-25"]\n# ')
    assert inside("bridges", "tests.cli:X", "--folder", folder).returncode == 2


def test_no_rule_is_missing() -> None:
    done = inside("bridges", "--missing")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no rule is missing\n")


@pytest.mark.full
def test_features_of_a_class_that_peers_miss_are_printed(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(WEATHER)
    done = execute(PYTHON, "-c", RUN, "bridges", "weather:Weather", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = " ".join(done.stdout.split("MCP 2024-11-05\n")[1].split("MCP 2025-03-26\n")[0].split())
    assert "tools/list: tools that must run as tasks are removed: only MCP 2025-11-25 has tasks" in told
    assert "prompts/get: MCP 2024-11-05 has no audio" in told
    assert "tools/call" not in done.stdout
    assert "MCP 2025-11-25\n\n  nothing is missed\n" in done.stdout


def test_a_subject_that_is_no_class_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_program_that_ends.py").write_text("raise SystemExit(3)")
    for subject, says in [
        ("weather", "cannot be imported"),
        ("no_such:Thing", "cannot be imported"),
        ("a_program_that_ends:Thing", "cannot be imported: SystemExit: 3"),
        ("json:loads", "is not a server or client class"),
    ]:
        assert says in complaint("bridges", subject)
