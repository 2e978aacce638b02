"""Changed tools of an entry of an `mcpServers` file, in hosts, gateways and proxies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen import v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.app import BadOverride, proxy
from mcp_bindgen.app.serving import InProcess
from mcp_bindgen.gateway import Gateway
from mcp_bindgen.host import Host, NotRouted
from mcp_bindgen.host.configuration import BadConfig, Entry, entry
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.session.endpoint import Servers
from mcp_bindgen.runtime.session.targets import Served
from tests.harness.checked_connections import refused
from tests.harness.commands import inside
from tests.harness.effort import each
from tests.harness.forks import PYTHON

BOOKS = """
from mcp_bindgen.app import App, run

app = App("books")

@app.tool
def search(words: str, lang: str, limit: int = 10) -> str:
    return f"{words} {lang} {limit}"

@app.tool
def drop(title: str) -> None: ...

@app.tool
def count() -> int:
    return 2

run(app)
"""
TOOLS = {
    "search": {
        "name": "find",
        "arguments": {"words": {"name": "query"}, "lang": {"default": "${BOOKS_LANGUAGE:-en}", "hide": True}},
    },
    "drop": {"hide": True},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "books.py").write_text(BOOKS, "utf-8")
    given = {"command": PYTHON, "args": [str(tmp_path / "books.py")], "tools": TOOLS}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"books": given}}), "utf-8")
    return tmp_path / "mcp.json"


def read(config: Path) -> Entry:
    return entry("books", json.loads(config.read_text("utf-8"))["mcpServers"]["books"], config)


async def text_of(client: Any, tool: str, **arguments: Any) -> str:
    return str((await client.call_tool(tool, arguments)).content[0].text)


@each("wrapped", [proxy, Gateway])
@each("package", [v2025_06_18, v2026_07_28])
async def test_proxies_and_gateways_change_the_tools_of_an_entry(wrapped: Any, package: Any, config: Path) -> None:
    async with package.Client.connect(wrapped(read(config))) as client:
        tools = {tool["name"]: tool for tool in [one.model_dump() async for one in client.iter_tools()]}
        assert tools.keys() == {"find", "count"}
        schema = tools["find"]["inputSchema"]
        assert (schema["properties"].keys(), schema["required"]) == ({"query", "limit"}, ["query"])
        assert await text_of(client, "find", query="Emma") == "Emma en 10"
        assert await text_of(client, "count") == '{"result":2}'
        for name in ("search", "drop"):
            await refused(
                client.call_tool(name, {"words": "x", "lang": "x", "title": "x"}), ProtocolError, "Unknown tool"
            )


async def test_a_host_changes_the_tools_of_an_entry(config: Path) -> None:
    clients: list[Any] = [v2025_06_18.Client, v2026_07_28.Client]
    for client in clients:
        async with Host.from_config(config, client=client) as found:
            host: Any = found
            assert await text_of(host, "find", query="Emma") == "Emma en 10"
            assert [offer.item.name for offer in await host.tools()] == ["find", "count"]
            assert [offer.item.name for offer in await host.search("find")] == ["find"]
            (function,) = await host.functions("openai", only=lambda offer: offer.item.name == "find")
            assert said(await host.dispatch(function.name, {"query": "Emma", "limit": 1})) == "Emma en 1"
            with pytest.raises(NotRouted, match="no server offers a tool 'drop'"):
                await host.call_tool("drop", {"title": "x"})
            await refused(host.call_tool("drop", {"title": "x"}, server="books"), ProtocolError, "Unknown tool: drop")
            await refused(host.call_tool("find", {"words": "x"}), ProtocolError, "'words' is unknown")


def said(result: Any) -> str:
    return str(result.content[0].text)


async def test_a_named_server_is_listed_before_its_first_changed_call(config: Path) -> None:
    async with Host.from_config(config, client=v2026_07_28.Client) as host:
        result: Any = await host.call_tool("find", {"query": "Emma"}, server="books")
        assert said(result) == "Emma en 10"


async def test_a_call_of_an_unchanged_tool_lists_nothing(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Host.from_config(config, client=v2026_07_28.Client) as host:
        monkeypatch.setattr(Host, "tools", None)
        assert said(await host.call_tool("count", {}, server="books")) == '{"result":2}'


async def test_a_host_leaves_out_the_tools_of_an_entry_whose_changes_do_not_fit(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = json.loads(config.read_text("utf-8"))["mcpServers"]["books"] | {"tools": {"serch": {"hide": True}}}
    async with Host({"books": given}, v2026_07_28.Client) as host:
        assert await host.tools() == []
    problem = "\"tools\": /serch: the server has no such tool; did you mean 'search'?"
    assert f"MCP server books: its tools are left out: {problem}" in caplog.text


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ({"serch": {}}, "/serch: the server has no such tool; did you mean 'search'?"),
        ({"search": {"name": "count"}}, "/search/name: the server has a tool 'count', too"),
        ({"search": {"arguments": {"lang": {"hide": True}}}}, "/search/arguments/lang/hide: the argument is required"),
    ],
)
def test_a_gateway_reports_changes_that_do_not_fit_in_one_line(tools: Any, problem: str, config: Path) -> None:
    document = json.loads(config.read_text("utf-8"))
    document["mcpServers"]["books"]["tools"] = tools
    config.write_text(json.dumps(document), "utf-8")
    done = inside("gateway", f"{config}#books")
    assert done.returncode == 2
    assert problem in done.stderr.splitlines()[-1]


def test_an_entry_with_malformed_changes_is_reported_with_their_pointer() -> None:
    with pytest.raises(BadConfig) as caught:
        entry("x", {"command": "y", "tools": {"a": {"arguments": {"b": {"hidden": True}}}}})
    assert str(caught.value) == "server 'x': \"tools\": /a/arguments/b/hidden: Extra inputs are not permitted"
    assert entry("x", {"command": "y", "tools": ["*"]}).tools == {}  # a list of names, as some hosts have it


class Paged(v2025_11_25.Server):
    """Server with a tool on each page."""

    names: tuple[str, ...] = ("a", "b", "c")

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        page = int(params.cursor or 0)
        more = {"nextCursor": str(page + 1)} if page + 1 < len(self.names) else {}
        return {"tools": [{"name": self.names[page], "inputSchema": {"type": "object"}}], **more}

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        return {"content": [{"type": "text", "text": params.name}]}


class Target(InProcess):
    def __init__(self, *names: str) -> None:
        self.server = Paged()
        self.server.names = names

    def served(self) -> Served:
        return Servers(self.server)


async def test_a_new_tool_with_a_name_that_an_override_gave_is_an_error_of_the_list() -> None:
    target = Target("a", "b")
    async with v2025_11_25.Client.connect(Gateway(target, tools={"b": {"name": "c"}})) as client:
        assert [tool.name async for tool in client.iter_tools()] == ["a", "c"]
        assert await text_of(client, "c") == "b"
        target.server.names = ("a", "b", "c")
        with pytest.raises(ProtocolError, match="/b/name: the server has a tool 'c', too"):
            _ = [tool async for tool in client.iter_tools()]
        assert await text_of(client, "c") == "b"


def test_a_gateway_refuses_malformed_changes_at_once() -> None:
    with pytest.raises(BadOverride, match="/b/name: Input should be a valid string"):
        Gateway("server", tools={"b": {"name": 1}})
