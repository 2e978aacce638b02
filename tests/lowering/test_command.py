"""`mcp-bindgen contract lower`: its three formats, its exit codes and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import inside

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "day": {"type": "integer"}}, "required": ["city"]}
NEVER = {"type": "object", "properties": {"a": False}, "required": ["a"]}


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    """A contract with three tools: narrowed, exact and refused."""
    exact = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    schemas = {"forecast": CITY, "ping": exact, "never": NEVER}
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    file = tmp_path / "weather.json"
    file.write_text(json.dumps({"tools": tools}), "utf-8")
    return file


def test_json_has_the_schema_and_the_reasons(contract: Path) -> None:
    done = inside("contract", "lower", contract, "--for", "openai-strict", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    document: dict[str, Any] = json.loads(done.stdout)
    assert document.keys() == {"profile", "tools"}
    assert document["profile"] == "openai-strict"
    forecast, ping, never = document["tools"]
    properties = {"city": {"type": "string"}, "day": {"type": ["integer", "null"]}}
    closed = {"type": "object", "properties": properties, "required": ["city", "day"], "additionalProperties": False}
    reasons = [
        ("/inputSchema/properties/day", "null-if-absent", "every member must be required; make 'day' required"),
        ("/inputSchema", "close-object", "objects must be closed; set additionalProperties to false"),
    ]
    told = [dict(zip(("pointer", "rule", "reason"), one, strict=True)) for one in reasons]
    assert forecast == {"name": "forecast", "verdict": "narrowed", "schema": closed, "reasons": told}
    assert (ping["verdict"], ping["reasons"]) == ("exact", [])
    assert (never["verdict"], never["schema"]) == ("refused", None)


def test_text_shows_sizes_locations_and_witnesses(contract: Path) -> None:
    shown = " ".join(inside("contract", "lower", contract, "--for", "openai-strict", code=1).stdout.split())
    assert "3 tools for OpenAI, function calling with strict mode: 1 exact, 1 narrowed, 1 refused." in shown
    assert "Estimated tokens of names and schemas: " in shown
    assert "/inputSchema: objects must be closed; set additionalProperties to false" in shown
    assert 'Lost: {"city": "", "other": null}' in shown
    assert "ping" not in shown


def test_github_annotations_report_errors_and_warnings(contract: Path) -> None:
    done = inside("contract", "lower", contract, "--for", "openai-strict", "--format", "github")
    error, warning = (line for line in done.stdout.splitlines() if not line.startswith("::notice"))
    assert warning.startswith("::warning file=")
    assert "forecast: /inputSchema: objects must be closed" in warning
    assert "::never: /inputSchema: no arguments are accepted; correct the schema" in error


def test_exit_codes_distinguish_success_from_usage_errors(contract: Path) -> None:
    assert inside("contract", "lower", contract, "--for", "cursor").returncode == 0
    done = inside("contract", "lower", contract, "--for", "gpt", code=2)
    assert "unknown profile 'gpt'; use a TOML file or one of anthropic, " in done.stderr
