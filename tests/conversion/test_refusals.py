"""What peers get where a draft has no rules: valid messages of their revision that name the place and the fix."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_bindgen.spec import Store
from tests.conversion.test_next_revision import user
from tests.harness.commands import execute, inside, save
from tests.harness.next_revision import BASIS
from tests.harness.small_schemas import Schema, record, ref

pytestmark = pytest.mark.full

CONVERSATION = """
import json
import anyio
from mcp_bindgen.user_bindings import install
install()
from mcp_bindgen import v2026_07_28 as old, vdraft as new
from mcp_bindgen.bridging.chain import NotConvertible
from mcp_bindgen.bridging.converter import implementation
from mcp_bindgen.bridging.server import failed_result
from mcp_bindgen.testing import connected

class Weather(new.Server):
    info = new.types.Implementation(name="weather", version="1")
    def call_tool(self, params, ctx):
        content = [new.types.TextContent(text="sunny")]
        return new.types.CallToolResult(outputs=[new.types.Output(content=content)])

async def said(call):
    try:
        return (await call).model_dump(mode="json", exclude_none=True, exclude={"meta"})
    except Exception as error:
        return str(error)

async def main():
    async with connected(old.Client(), Weather()) as connection:
        found = [await said(connection.call_tool(name)) for name in ("forecast", "forecasts")]
    try:
        implementation(old.REVISION, new.REVISION, old.types.Implementation(name="a", version="1" * 9))
    except NotConvertible as error:
        found.append(str(error))
    refused = failed_result(new.REVISION.request("tools/call"), NotConvertible("here", "why"))
    print(json.dumps([*found, refused.model_dump(mode="json", exclude_none=True)]))

anyio.run(main)
"""


def draft() -> Schema:
    """Return the newest revision with wrapped results of tools, and short names of tools."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    result = definitions["CallToolResult"]
    content = result["properties"].pop("content")
    definitions["Output"] = record("content format", format={"type": "string", "const": "content"}, content=content)
    result["properties"]["outputs"] = {"type": "array", "items": ref("Output")}
    result["required"] = ["outputs", "resultType"]
    for name, member in (("CallToolRequestParams", "name"), ("Implementation", "version")):
        definitions[name]["properties"][member]["maxLength"] = 8
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a user folder with the imported draft, without rules."""
    folder = tmp_path_factory.mktemp("user")
    with user(folder / "home"):
        done = inside("schema", "import", "draft", save(folder / "draft.json", draft()))
        assert (done.returncode, "bridges: 2 differences without a rule" in done.stderr) == (0, True), done.stderr
        yield folder / "home"


def test_peers_get_valid_messages_that_name_the_place_and_the_fix(home: Path) -> None:
    done = execute(sys.executable, "-c", CONVERSATION, MCP_BINDGEN_HOME=str(home))
    assert done.returncode == 0, done.stderr
    old, long, version, new = json.loads(done.stdout)
    reason = f"CallToolResult.content: MCP {BASIS} wants it; write a rule for it: mcp-bindgen bridges --missing"
    assert old == {"resultType": "complete", "isError": True, "content": [{"type": "text", "text": reason}]}
    assert long == "CallToolRequestParams.name: MCP draft accepts string (maxLength 8) only (at /name) (-32602)"
    assert version == "Implementation.version: MCP draft accepts string (maxLength 8) only (at /version) (-32603)"
    outputs = [{"format": "content", "content": [{"type": "text", "text": "here: why"}]}]
    assert new == {"resultType": "complete", "isError": True, "outputs": outputs}


INTRODUCTION = """
import json
import anyio
from mcp_bindgen.user_bindings import install
install()
from mcp_bindgen import v2025_11_25 as oldest, v2026_07_28 as old, vdraft as new
from mcp_bindgen.testing import connected

class Weather(new.Server):
    info = new.types.Implementation(name="weather", version="1")
    def list_tools(self, params, ctx):
        tool = new.types.Tool(name=ctx.peer_info.version, input_schema=new.types.ToolInputSchema())
        return new.types.ListToolsResult(tools=[tool])

class Long(old.Server):
    info = old.types.Implementation(name="long", version="1.0.0-beta")

async def main():
    found = []
    for package in (old, oldest):
        client = package.Client()
        client.info = package.types.Implementation(name="a", version="1.0.0-beta")
        async with connected(client, Weather()) as connection:
            found += [tool.name for tool in (await connection.list_tools()).tools]
    async with connected(new.Client(), Long()) as connection:
        print(json.dumps([*found, connection.server_info.version]))

anyio.run(main)
"""

SHORTEN = """
def cut(version, context):
    context.record_loss()
    return version[:8]
"""


@pytest.mark.full
def test_a_rule_converts_the_version_with_which_a_peer_introduces_itself(tmp_path: Path) -> None:
    with user(tmp_path / "home"):
        inside("schema", "import", "draft", save(tmp_path / "draft.json", draft()), code=0)
        (tmp_path / "home").chmod(0o700)
        folder = tmp_path / "home" / "schema"
        (folder / "shorten.py").write_text(SHORTEN, "utf-8")
        rule = 'Implementation.version = { by = "shorten:cut", because = "versions are short" }'
        (folder / "bridges.toml").write_text(f'["{BASIS} -> draft"]\n{rule}\n', "utf-8")
        inside("generate", "draft", code=0)
    done = execute(sys.executable, "-c", INTRODUCTION, MCP_BINDGEN_HOME=str(tmp_path / "home"), code=0)
    assert json.loads(done.stdout) == ["1.0.0-be"] * 3
    assert "Implementation.version: versions are short" in done.stderr
