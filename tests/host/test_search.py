"""Keyword search for tools, in entries of `tools/list` and in hosts."""

from __future__ import annotations

import sys
from itertools import islice, product
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from mcp_bindgen.app.search import search
from mcp_bindgen.host import Host
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.effort import each


def tool(name: str, description: str = "", **arguments: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}}


TOOLS = [
    tool("forecast", "Tell the weather of the next days.", city="Name of a city"),
    tool("createIssue", "Create an issue in a tracker.", title="Its title", body="Its text"),
    tool("list_issues", "List the issues of a repository."),
    tool("send_mail", "Send a mail about the weather, an issue or anything else.", to="Address"),
    *(tool(f"tool_{number}", "Do something else.") for number in range(200)),
]


@each(
    ("words", "names"),
    [
        ("weather", ["forecast", "send_mail"]),
        ("forecasts", ["forecast"]),
        ("create an issue", ["createIssue"]),
        ("ISSUES", ["list_issues", "createIssue", "send_mail"]),
        ("city", ["forecast"]),
        ("tool 17", ["tool_17"]),
        ("quantum", []),
        ("", []),
    ],
)
def test_the_best_tools_are_first(words: str, names: list[str]) -> None:
    found = [TOOLS[index]["name"] for index in search(words, TOOLS)]
    assert (found[: len(names)], bool(found)) == (names, bool(names))


def test_search_limits_its_results_and_accepts_an_empty_list() -> None:
    assert len(search("tool", TOOLS, limit=3)) == 3
    assert search("x", []) == []


def test_tools_without_words_are_not_found() -> None:
    assert search("anything", [{"name": "_", "inputSchema": {}}]) == []


@pytest.mark.full
async def test_a_host_searches_the_tools_of_all_servers(tmp_path: Path) -> None:
    for name in ("forecast", "mail"):
        (tmp_path / f"{name}.py").write_text(
            f'from mcp_bindgen.app import App\n\napp = App("{name}")\n\n@app.tool\ndef {name}(city: str) -> str:\n'
            f'    "Work on {name}."\n    return city\n'
        )
    servers = {
        name: {"command": sys.executable, "args": ["-m", "mcp_bindgen.app", str(tmp_path / f"{name}.py")]}
        for name in ("forecast", "mail")
    }
    async with Host(servers, Client) as host:
        (found,) = await host.search("a forecast")
        assert (found.server, found.item.name) == ("forecast", "forecast")
        assert len(await host.search("city")) == 2
        functions = await host.functions("openai-strict", only=lambda offer: offer == found)
        assert [one.name for one in functions] == ["forecast__forecast"]


def test_the_time_of_a_search_does_not_grow_with_its_words() -> None:
    """A client could block the event loop of a server that offers `search_tools`."""
    words = " ".join(map("".join, islice(product("abcdefghij", repeat=4), 10_000)))
    tools = [{"name": f"tool_{number}", "description": words[:500]} for number in range(20)]
    begun = process_time()
    search(words, tools)
    assert process_time() - begun < 1
