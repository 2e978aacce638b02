"""Request origin: complete in the handler for each kind of HTTP request, and without credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime import connect
from tests.harness.any_revision import Tools, of_revision
from tests.harness.effort import each
from tests.harness.http_wires import listening

SENT = {"X-Tenant": "blue", "Authorization": "Bearer secret", "DPoP": "secret", "Cookie": "secret"}


class Tells(Tools):
    async def call_tool(self, params: Any, ctx: Any) -> Any:
        origin = ctx.origin
        assert ctx.scope.origin is origin
        assert "authorization" not in origin.headers
        assert len(origin.headers) == len(list(origin.headers))
        with pytest.raises(KeyError):
            origin.headers["Cookie"]
        said = [origin.principal, origin.address, origin.network, origin.headers["X-Tenant"], dict(origin.headers)]
        return self.text(json.dumps(said))


Old, New = of_revision(Tells, v2025_11_25), of_revision(Tells, v2026_07_28)


@each(("server", "sessions"), [(Old, True), (Old, False), (New, True)])
async def test_a_handler_gets_the_origin_of_its_request_without_credentials(server: Any, sessions: bool) -> None:
    app = HttpApp(server(), sessions=sessions, principal=lambda scope: "ada")
    async with listening(app) as port, connect(f"http://127.0.0.1:{port}/mcp", headers=SENT) as client:
        principal, address, network, tenant, headers = json.loads((await client.call_tool("tell")).content[0].text)
        assert [principal, address, network, tenant] == ["ada", "127.0.0.1", "tcp", "blue"]
        assert "secret" not in json.dumps(headers)
