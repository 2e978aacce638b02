"""The origin of a request reaches its handler whole, on each way that HTTP has, and holds no credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime import connect
from mcp_bindgen.v2025_11_25 import Server as Stateful
from mcp_bindgen.v2025_11_25 import types as stateful
from mcp_bindgen.v2026_07_28 import Server as Stateless
from mcp_bindgen.v2026_07_28 import types as stateless
from tests.support.http_wires import listening

SENT = {"X-Tenant": "blue", "Authorization": "Bearer secret", "DPoP": "secret", "Cookie": "secret"}


class Tells:
    types: Any

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        origin = ctx.origin
        assert ctx.scope.origin is origin
        assert "authorization" not in origin.headers
        assert len(origin.headers) == len(list(origin.headers))
        with pytest.raises(KeyError):
            origin.headers["Cookie"]
        said = [origin.principal, origin.address, origin.network, origin.headers["X-Tenant"], dict(origin.headers)]
        return self.types.CallToolResult(content=[self.types.TextContent(text=json.dumps(said))])


class Old(Tells, Stateful):
    types = stateful


class New(Tells, Stateless):
    types = stateless


@pytest.mark.parametrize(("server", "sessions"), [(Old, True), (Old, False), (New, True)])
async def test_a_handler_knows_where_its_request_came_from(server: Any, sessions: bool) -> None:
    app = HttpApp(server(), sessions=sessions, principal=lambda scope: "ada")
    async with listening(app) as port, connect(f"http://127.0.0.1:{port}/mcp", headers=SENT) as client:
        answer = await client.call_tool("tell")
        principal, address, network, tenant, headers = json.loads(answer.content[0].text)
        assert [principal, address, network, tenant] == ["ada", "127.0.0.1", "tcp", "blue"]
        assert "secret" not in json.dumps(headers)
