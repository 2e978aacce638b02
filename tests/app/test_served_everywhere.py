"""Pass an `App` wherever a server is accepted: clients, hosts, HTTP, checked connections."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.app import App
from mcp_bindgen.host import Host
from mcp_bindgen.http import HttpApp, SseApp
from mcp_bindgen.testing import connected

app = App("greeter", version="3")


@app.tool
def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello {name}"


@pytest.mark.parametrize("package", [v2024_11_05, v2025_11_25, v2026_07_28])
async def test_a_client_connects_to_an_app(package: Any) -> None:
    async with package.Client.connect(app) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).content[0].text == "Hello Ada"
    async with connected(package.Client(), app) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["greet"]


async def test_a_host_connects_to_an_app() -> None:
    async with Host({"people": app}, v2026_07_28.Client) as host:
        assert [offer.server for offer in await host.tools()] == ["people"]


async def test_an_app_is_served_over_http() -> None:
    served, hello = HttpApp(app), {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    async with served.lifespan(), httpx2.AsyncClient(transport=httpx2.ASGITransport(served)) as http:
        answer = await http.post("http://localhost/mcp", json={**hello, "params": params})
    assert '"serverInfo":{"name":"greeter"' in answer.text  # as JSON, or as an event on a busy machine
    assert SseApp(app).servers


def test_headers_need_a_url() -> None:
    with pytest.raises(ValueError, match="headers and auth are for URLs"):
        app.address({"x": "y"}, None, None)
