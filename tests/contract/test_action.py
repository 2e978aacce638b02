"""The GitHub Action compares contracts, and keeps one comment on the pull request."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.emit.test_project import outputs, yaml
from tests.harness.commands import ROOT, save

pytestmark = pytest.mark.full

GH = """#!/bin/sh
[ ! -e refuses ] || exit 1
case "$*" in
  *PATCH*) verb=edited; id=${4##*/} ;;
  *--jq*) exec jq -r "$5" comments ;;
  *) verb=created; id=$(jq length comments) ;;
esac
for word; do case "$word" in body=@*) file=${word#body=@} ;; esac; done
jq --argjson id "$id" --rawfile body "$file" \\
  '[.[] | select(.id != $id)] + [{id: $id, body: $body, user: {type: "Bot"}}]' comments > next && mv next comments
echo "$verb $id" >> log
"""
"""Stand-in for the command line of GitHub: the comments of a pull request, in a file."""

LISTS = {
    "old": {"city": {"type": "string"}},
    "same": {"city": {"type": "string"}},
    "wider": {"city": {"type": ["string", "null"]}},
    "narrower": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with lists of tools, a stand-in for `gh`, and a comment of somebody else."""
    for name, properties in LISTS.items():
        schema = {"type": "object", "properties": properties, "required": ["city"]}
        save(tmp_path / f"{name}.json", {"tools": [{"name": "forecast", "inputSchema": schema}]})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    save(tmp_path / "comments", [{"id": 0, "body": "Nice.", "user": {"type": "User"}}])
    return tmp_path


def run(folder: Path, new: str, *, number: str = "12", **inputs: str) -> str:
    """Run the action, and return its output `contract-fails`."""
    for name in ("summary", "mcp-bindgen-contract.md"):
        (folder / name).unlink(missing_ok=True)
    given = {"check": False, "contract-old": "old.json", "contract-new": f"{new}.json", "comment": True, **inputs}
    step = {"id": "contract", "uses": "OWNER/mcp-bindgen@v0.1.0", "with": given}
    found = outputs([step], folder, {"github.event.pull_request.number": number}, **variables(folder))
    return found["steps.contract.outputs.contract-fails"]


def variables(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_REPOSITORY": "acme/weather",
        "RUNNER_TEMP": str(folder),
    }


def comments(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "comments").read_text("utf-8"))
    return found


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []


def test_the_same_comment_is_kept(folder: Path) -> None:
    assert run(folder, "wider") == "false"
    assert "argument city" in comments(folder)[1]["body"]
    (folder / "old.json").write_bytes((folder / "wider.json").read_bytes())
    assert run(folder, "wider") == "false"
    assert "Nothing changed." in comments(folder)[1]["body"]
    assert log(folder) == ["created 1", "edited 1"]


def test_each_contract_has_its_comment(folder: Path) -> None:
    (folder / "weather.json").write_bytes((folder / "wider.json").read_bytes())
    assert [run(folder, new) for new in ("wider", "weather", "weather")] == ["false"] * 3
    assert log(folder) == ["created 1", "created 2", "edited 2"]


def test_a_contract_that_did_not_change_opens_no_comment(folder: Path) -> None:
    assert run(folder, "same") == "false"
    assert log(folder) == []


def test_a_break_fails_after_the_comment(folder: Path) -> None:
    with pytest.raises(AssertionError):
        run(folder, "narrower")
    (_, comment) = comments(folder)
    assert "Sensible callers break" in comment["body"]
    assert '"city": ""' in comment["body"]
    assert run(folder, "narrower", **{"fail-on": "never"}) == "false"


def test_the_callers_decide(folder: Path) -> None:
    save(folder / "callers.toml", {})
    (folder / "callers.toml").write_text('title = "Ours"\ndate = 2026-11-29\nsource = "Our clients"\n')
    assert run(folder, "wider", callers="callers.toml") == "false"
    assert "Callers callers" in comments(folder)[1]["body"]


def test_no_comment_is_written_without_a_pull_request_or_permission(folder: Path) -> None:
    assert run(folder, "wider", number="") == "false"
    (folder / "refuses").touch()
    assert run(folder, "wider") == "false"
    assert len(comments(folder)) == 1


def test_a_long_report_is_cut_for_the_comment(folder: Path) -> None:
    for name, kind in (("old", "string"), ("wider", "integer")):
        names = [f"city{number}{'é' * 90}" for number in range(300)]
        schemas = {one: {"type": "object", "properties": {one: {"type": kind}}} for one in names}
        save(folder / f"{name}.json", {"tools": [{"name": one, "inputSchema": schemas[one]} for one in names]})
    run(folder, "wider", **{"fail-on": "never"})
    body = comments(folder)[1]["body"]
    assert len((folder / "summary").read_bytes()) > 60_000
    assert len(body) < 65_536
    assert "The report is longer; the summary of the job has all of it." in body


def test_the_workflow_of_the_page_runs(folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "contract-drift.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(name: Contract.*?)^```", page, re.M | re.S)
    workflow = YAML(typ="safe", pure=True).load(text)
    job = workflow["jobs"]["contract"]
    assert list(workflow["on"]) == ["pull_request"]
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    (folder / "contracts").mkdir()
    (folder / "old.json").rename(folder / "contracts" / "weather-1.11.0.json")
    (folder / "wider.json").rename(folder / "weather.json")
    outputs(job["steps"], folder, {"github.event.pull_request.number": "12"}, **variables(folder))
    assert log(folder) == ["created 1"]


def test_the_inputs_are_documented() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8").partition("\n## GitHub Actions")[2]
    inputs = {name for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in re.findall(r"`([\w-]+)`", row)}
    assert inputs == set(yaml("action.yml")["inputs"])
