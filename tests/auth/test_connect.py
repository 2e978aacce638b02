"""Connecting with `auth`: time-outs do not apply to the user's login, and a failed login is reported once."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import Bearer, ClientCredentials, ClientSecret, StaticTokens
from mcp_bindgen.runtime import AuthorizationError, ConnectionClosed, connect
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import ProtocolError, Refused
from tests.harness.authorization_world import SECRET, World, oauth, slowly
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.protected import running
from tests.harness.scripted_http_server import Heard

NEW: Any = v2026_07_28.Client
CLIENTS: Any = [v2025_11_25.Client, NEW]
OLD: Any = [v2025_03_26.Client, v2025_11_25.Client]


def stateless(heard: Heard) -> dict[str, Any]:
    """Return the result that a stateless server gives."""
    shared = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **shared}
    return discovered if heard.name == "server/discover" else {"tools": [], **shared}


async def test_a_probe_waits_for_the_login_and_clients_declare_auth_extensions(given: World) -> None:
    said: list[Any] = []

    async def play(heard: Heard) -> None:
        if heard.headers.get("authorization", "").removeprefix("Bearer ") not in given.tokens:
            await given.refuse(heard, 401)
            return
        said.append(json.loads(heard.body)["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"])
        await heard.result(stateless(heard))

    given.answer_mcp = play
    auth: Any = oauth(login=slowly(2))
    async with connect(given.url, *CLIENTS, auth=auth, probe_timeout=0.8, timeout=1.8) as client:
        assert client.revision == "2026-07-28"
        await client.list_tools()
    assert [line for line in given.log if line.startswith("POST /mcp")] == ["POST /mcp"] * 3
    auth = ClientCredentials(ClientSecret("program", given.issuer, secret=SECRET))
    async with connect(given.url, NEW, auth=auth) as client:
        await client.list_tools()
    assert said[-1]["extensions"] == {"io.modelcontextprotocol/oauth-client-credentials": {}}
    assert "extensions" not in said[0]


async def test_a_failed_login_is_not_repeated_for_another_revision(given: World) -> None:
    given.edit_response = lambda back: {"error": "access_denied", "state": back["state"], "iss": back["iss"]}
    with pytest.raises(AuthorizationError, match="access_denied"):
        async with connect(given.url, *CLIENTS, auth=oauth()):
            pass
    assert given.counts("GET /authorize") == 1
    with pytest.raises(AuthorizationError, match="no user may be asked"):
        async with connect(given.url, *CLIENTS, auth=oauth(login=None)):
            pass


async def test_connecting_without_auth_reports_that_a_token_is_required(given: World) -> None:
    with pytest.raises(ConnectionClosed, match=r"wants a token: connect with auth=OAuth\(\)"):
        async with connect(given.url, *CLIENTS):
            pass


async def test_auth_for_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="auth is for URLs"):
        async with connect(["python"], auth=Bearer("token")):
            pass


@each("path", ["/mcp", "/sse"])
async def test_a_bearer_token_is_accepted_over_http_and_sse(path: str) -> None:
    token, auth = "a-token-of-somebody", cast(Any, Bearer("a-token-of-somebody"))
    with running(StaticTokens({token: Identity(subject="ada", scopes=frozenset({"mcp:read"}))})) as server:
        for kind in OLD:
            async with connect(f"{server.origin}{path}", kind, auth=auth) as client:
                assert (await client.call_tool("whoami")).content[0].text == "ada"
                await refused(client.call_tool("delete"), (Refused, ProtocolError))
                assert (await client.call_tool("whoami")).content[0].text == "ada"
