"""A proposal for `tools/call`, from a schema file to a running server, with data only.

The made-up revision 2026-12-01 follows SEP-3279: results of tools have `outputs` and `outputVariants` instead of
`content` and `structuredContent`. Two files are written by hand: the schema and the rules for the bridges.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_bindgen.spec import Store
from tests.conversion.test_next_revision import user
from tests.harness.commands import execute, inside, save, snapshot
from tests.harness.small_schemas import Schema

pytestmark = pytest.mark.full

OLD, NEW = "2026-07-28", "2026-12-01"

RULES = f"""
["{OLD} -> {NEW}"]
CallToolResult.content = {{ rename = "outputs", because = "MCP {NEW} calls the content of a result outputs" }}
CallToolResult.structuredContent = {{ do = "drop", because = "MCP {NEW} has no structured content" }}

["{NEW} -> {OLD}"]
CallToolResult.outputs = {{ rename = "content", because = "MCP {OLD} calls the outputs of a result content" }}
CallToolResult.outputVariants = {{ do = "drop", because = "MCP {OLD} has one form of each output" }}
"""

CONVERSATION = """
import json
import anyio
from mcp_bindgen.runtime import install
install()
from mcp_bindgen import v2026_07_28 as old, v2026_12_01 as new
from mcp_bindgen.bridging.chain import chain
from mcp_bindgen.bridging.chain import LossReport
from mcp_bindgen.testing import connected

class Weather(new.Server):
    info = new.types.Implementation(name="weather", version="1")

    def call_tool(self, params, ctx):
        outputs = [new.types.TextContent(text=params.name)]
        short = [new.types.TextContent(text=params.name[:1])]
        return new.types.CallToolResult(outputs=outputs, output_variants={"short": short})

async def main():
    for client in (new.Client(), old.Client()):
        async with connected(client, Weather()) as connection:
            result = await connection.call_tool("forecast")
            print(json.dumps(result.model_dump(mode="json", exclude={"meta"})))
    before = {"resultType": "complete", "content": [], "structuredContent": {"a": 1}}
    print(json.dumps(chain("2026-07-28", "2026-12-01").results("tools/call").convert(before, LossReport())))

anyio.run(main)
"""


def proposal() -> Schema:
    """Return the newest revision with the results of the proposal."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(OLD).definitions))
    result = definitions["CallToolResult"]
    members = result["properties"]
    del members["structuredContent"]
    members["outputs"] = members.pop("content")
    members["outputVariants"] = {"type": "object", "additionalProperties": copy.deepcopy(members["outputs"])}
    result["required"] = ["outputs", "resultType"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a user folder with the imported proposal and its rules."""
    folder = tmp_path_factory.mktemp("user")
    with user(folder / "home"):
        file = save(folder / "proposal.json", proposal())
        done = inside("schema", "import", NEW, file)
        assert (done.returncode, "3 differences without a rule" in done.stderr) == (0, False), done.stderr
        (folder / "home" / "schema" / "bridges.toml").write_text(RULES, "utf-8")
        done = inside("generate", NEW)
        assert (done.returncode, done.stderr) == (0, "")
        yield folder / "home"


def test_the_user_folder_contains_schema_rules_and_generated_files(home: Path) -> None:
    files = set(snapshot(home))
    own = {f"schema/{name}" for name in ("revisions.toml", f"{NEW}/schema.json", "bridges.toml")}
    assert {name for name in files if not name.startswith("generated/")} == own
    assert {name.split("/")[2] for name in files if name.startswith("generated/")} == {"v2026_12_01", "bridges"}


def test_diff_finds_the_changes_of_the_proposal(home: Path) -> None:
    done = inside("diff", OLD, NEW, "--method", "tools/call", "--format", "json")
    (comparison,) = json.loads(done.stdout)["comparisons"]
    found = {(one["rule"], one["subject"]) for one in comparison["findings"]}
    assert found >= {
        ("field-removed-required", "CallToolResult.content"),
        ("field-added-required", "CallToolResult.outputs"),
        ("field-removed-optional", "CallToolResult.structuredContent"),
        ("field-added-optional", "CallToolResult.outputVariants"),
    }


def test_the_bridges_command_reports_the_losses_of_the_proposal(home: Path) -> None:
    assert inside("bridges", "--missing").stdout == ""
    steps = {one["step"]: one["sections"] for one in json.loads(inside("bridges", "--json").stdout)}
    up, down = f"MCP {NEW} has no structured content", f"MCP {OLD} has one form of each output"
    told = ((f"{OLD} -> {NEW}", "structuredContent", up), (f"{NEW} -> {OLD}", "outputVariants", down))
    for step, member, reason in told:
        entries = [entry for section in steps[step] for entry in section["entries"]]
        assert any(f"CallToolResult.{member}" in entry["places"] and entry["reason"] == reason for entry in entries)


def test_a_server_answers_clients_of_both_revisions(home: Path) -> None:
    done = execute(sys.executable, "-c", CONVERSATION, MCP_BINDGEN_HOME=str(home))
    assert done.returncode == 0, done.stderr
    text = [{"type": "text", "text": "forecast"}]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"resultType": "complete", "outputs": text, "outputVariants": {"short": [{"type": "text", "text": "f"}]}},
        {"resultType": "complete", "content": text},
        {"resultType": "complete", "outputs": []},
    ]
