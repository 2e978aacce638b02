"""SARIF, JUnit and GitHub annotations of each report that names places, with files and lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema_rs import Draft202012Validator

from tests.harness.commands import inside
from tests.harness.effort import cases
from tests.harness.small_schemas import draft

TEXT = {"type": "string"}
PLACE = {"type": "integer", "minimum": 1}


def record(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


REGION = record(startLine=PLACE, startColumn=PLACE)
PHYSICAL = record("artifactLocation", artifactLocation=record("uri", uri=TEXT), region=REGION)
RESULT = record(
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=record("text", text=TEXT),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    locations=listed(record(physicalLocation=PHYSICAL)),
)
DRIVER = record("name", name=TEXT, version=TEXT, rules=listed(record("id", id=TEXT, name=TEXT)))
RUN = record("tool", "results", tool=record("driver", driver=DRIVER), results=listed(RESULT))
SARIF = record("version", "runs", version={"const": "2.1.0"}, runs=listed(RUN))
"""Part of the published JSON Schema of SARIF 2.1.0: everything that the renderer writes."""

BEFORE = {"tools": [{"name": "find", "inputSchema": {"type": "object", "properties": {"city": TEXT}}}]}
AFTER = {"tools": [{"name": "find", "inputSchema": record("city", city=TEXT)}]}


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document, indent=2), "utf-8")
    return path


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return a command line with findings for each command; the test runs in the folder of their files."""
    monkeypatch.chdir(tmp_path)
    new = draft()
    new["$defs"]["Loan"]["properties"]["fee"] = {"type": "integer"}
    new["$defs"]["Loan"]["required"] = [*new["$defs"]["Loan"].get("required", ()), "fee"]
    written(tmp_path / "old.json", draft())
    written(tmp_path / "new.json", new)
    written(tmp_path / "v1.json", BEFORE)
    written(tmp_path / "v2.json", AFTER)
    never = {"type": "object", "properties": {"city": False}, "required": ["city"]}
    written(tmp_path / "v3.json", {"tools": [*AFTER["tools"], {"name": "never", "inputSchema": never}]})
    schema = "{type: object, required: [city], properties: {city: {type: string}}}"
    (tmp_path / "v2.yaml").write_text(f"tools:\n- name: find\n  inputSchema: {schema}\n", "utf-8")
    (tmp_path / "code.py").write_text("from mcp_bindgen.v2025_06_18 import types\n\nprint(types.JSONRPCError)\n")
    return {
        "diff": ["diff", "old.json", "new.json"],
        "contract diff": ["contract", "diff", "v1.json", "v2.json"],
        "contract diff of YAML": ["contract", "diff", "v1.json", "v2.yaml"],
        "contract lower": ["contract", "lower", "v3.json", "--for", "openai-strict"],
        "migrate": ["migrate", "2025-06-18", "2025-11-25", "code.py"],
        "check": ["check", "2024-11-05", "--out", "out", "--package", "acme"],
    }


EXPECTED = {
    "diff": ("new.json", "field-added-required"),
    "contract diff": ("v2.json", "arguments-breaking"),
    "contract diff of YAML": ("v2.yaml", "arguments-breaking"),
    "contract lower": ("v3.json", "empty"),
    "migrate": ("code.py", "definition-renamed"),
    "check": ("out/acme", "generated-code-drift"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", cases(EXPECTED, quick=["diff", "contract diff"]))
def test_every_format_names_rule_file_and_line(commands: dict[str, list[str]], name: str) -> None:
    file, rule = EXPECTED[name]
    printed = {form: inside(*commands[name], "--format", form) for form in ("sarif", "junit", "github")}

    log = json.loads(printed["sarif"].stdout)
    Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    result = next(one for one in run["results"] if one["ruleId"] == rule)
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].startswith(file)
    line = place["region"]["startLine"]

    suites = ElementTree.fromstring(printed["junit"].stdout)
    cases = [case for case in suites.iter("testcase") if case.get("classname") == rule]
    assert cases[0].get("line") == str(line)
    assert str(cases[0].get("file")).startswith(file)
    assert sum(1 for _ in suites.iter("failure")) == sum(int(suite.get("failures", 0)) for suite in suites)

    errors = [text for text in printed["github"].stdout.splitlines() if text.startswith("::error ")]
    assert [text for text in errors if re.match(rf"::error file={re.escape(file)}[^,]*,line={line},.*{rule}::", text)]


def test_lines_point_to_the_changed_members(commands: dict[str, list[str]]) -> None:
    changed = {"diff": '"fee": {', "contract diff": '"city": {', "contract lower": '"inputSchema": {'}
    for name, member in changed.items():
        log = json.loads(inside(*commands[name], "--format", "sarif").stdout)
        lines = Path(EXPECTED[name][0]).read_text("utf-8").splitlines()
        places = [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in log["runs"][0]["results"]]
        assert any(member in lines[place - 1] for place in places), (name, places)


def test_a_report_without_findings_has_one_passing_test_case(commands: dict[str, list[str]]) -> None:
    for arguments in (["diff", "old.json", "old.json"], ["contract", "diff", "v1.json", "v1.json"]):
        suites = ElementTree.fromstring(inside(*arguments, "--format", "junit").stdout)
        assert len(list(suites.iter("testcase"))) == 1
        assert not list(suites.iter("failure"))
        assert json.loads(inside(*arguments, "--format", "sarif").stdout)["runs"][0]["results"] == []
