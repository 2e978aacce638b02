"""Connecting with `auth`: time-outs do not apply to the user's login, and a failed login is reported once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import Bearer, ClientCredentials, ClientSecret, Manual, StaticTokens
from mcp_bindgen.runtime import AuthorizationError, ConnectionClosed, connect
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import ProtocolError, Refused
from tests.harness.authorization_world import CALLBACK, SECRET, World, agree, oauth, slowly
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


class Stateful:
    """Server of 2025-11-25 behind a world's authorization.

    Attributes:
        open: Messages that need no token, by name.
    """

    def __init__(self, given: World, *open: str) -> None:
        self.given, self.open, self.taken = given, open, list[str]()
        given.answer_mcp = self.play

    async def play(self, heard: Heard) -> None:
        token = heard.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.given.tokens and heard.name not in self.open:
            await self.given.refuse(heard, 401)
            return
        self.taken.append(heard.name)
        await self.answer(heard)

    async def answer(self, heard: Heard) -> None:
        if heard.name == "initialize":
            info = {"name": "old", "version": "1"}
            agreed = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            await heard.result(agreed, mcp_session_id="s-1")
        elif heard.method != "POST":
            await heard.end(405)
        else:
            await (heard.end() if heard.id is None else heard.result({"tools": []}))


class Streaming(Stateful):
    """Server that ends each stream before the response, which arrives on the resumed stream."""

    expire: Callable[[], object]

    async def answer(self, heard: Heard) -> None:
        if heard.name == "tools/list":
            self.expire()
            await heard.event(id="e-1", retry=10)
        elif heard.headers.get("last-event-id") == "e-1":
            await heard.event({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}})
        else:
            await super().answer(heard)


class Sse(Stateful):
    """Server of HTTP+SSE, which refuses the POST of Streamable HTTP."""

    stream: Heard

    async def answer(self, heard: Heard) -> None:
        if heard.method == "GET":
            self.stream = heard
            await heard.event()
            await heard.write(b"event: endpoint\ndata: /mcp?messages\n\n")
            await heard.until_gone()
        elif not heard.query:
            await heard.end(405)
        else:
            info, revision = {"name": "old", "version": "1"}, "2025-03-26"
            agreed = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info, "tools": []}
            await heard.end(202)
            if heard.id is not None:
                await self.stream.event({"jsonrpc": "2.0", "id": heard.id, "result": agreed})


def first_quickly(seconds: float) -> Manual:
    """Return a login in which the user agrees at once, and takes some seconds for each later login."""
    waits = iter([0.0])

    async def visit(url: str) -> str:
        await anyio.sleep(next(waits, seconds))
        return await agree(url)

    return Manual(visit, CALLBACK)


@each("kind", [Stateful, Sse])
async def test_connecting_waits_for_the_login_over_each_transport(given: World, kind: type[Stateful]) -> None:
    kind(given, *["server/discover", "initialize"] * (kind is Sse))  # then it is the GET that needs the token
    limits: Any = {"probe_timeout": 0.8, "timeout": 1.8}
    logins = given.counts("GET /authorize")
    async with connect(given.url, *OLD, auth=oauth(login=slowly(2)), **limits) as client:
        assert (await client.list_tools()).tools == []
    assert given.counts("GET /authorize") == logins + 1


@each("kind", [Stateful, Sse])
async def test_the_end_of_the_handshake_waits_for_the_login(given: World, kind: type[Stateful]) -> None:
    """A server may challenge the first message after `initialize`; the handshake begins again after the login."""
    server = kind(given, "initialize", "server/discover", "GET")
    async with connect(given.url, *OLD, auth=oauth(login=slowly(1.5)), timeout=1.2) as client:
        await client.list_tools()
    assert server.taken.count("initialize") == (2 if kind is Stateful else 3)  # one of these three over Streamable HTTP
    assert server.taken[-1 - (server.taken[-1] == "DELETE")] == "tools/list"
    assert server.taken.count("notifications/initialized") == 1


def expiry(given: World, passes: Callable[[float], None]) -> Callable[[], None]:
    """Return a function that lets the login expire, with its refresh token."""

    def expire() -> None:
        passes(4000)
        given.tokens.clear()
        given.families.clear()

    return expire


@each("kind", [Stateful, Sse])
async def test_requests_wait_together_for_a_login_on_a_running_connection(
    given: World, kind: type[Stateful], passes: Callable[[float], None]
) -> None:
    kind(given)
    expire, logins = expiry(given, passes), given.counts("GET /authorize")
    async with connect(given.url, *OLD, auth=oauth(login=first_quickly(2))) as client:
        await client.list_tools()
        expire()
        hasty, found = client.with_options(timeout=1), list[Any]()

        async def ask() -> None:
            found.append(await hasty.list_tools())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
        assert len(found) == 3
        assert given.counts("GET /authorize") == logins + 2
        expire()
        with anyio.move_on_after(0.5) as scope:
            await client.list_tools()
        assert scope.cancelled_caught


async def test_a_resumed_response_waits_for_the_login_and_its_request_is_sent_once(
    given: World, passes: Callable[[float], None]
) -> None:
    server = Streaming(given)
    server.expire = expiry(given, passes)
    async with connect(given.url, *OLD, auth=oauth(login=first_quickly(2))) as client:
        await client.with_options(timeout=1).list_tools()
    assert server.taken.count("tools/list") == 1
    assert given.counts("GET /authorize") == 2


async def test_a_server_cannot_have_the_user_log_in_without_end(given: World) -> None:
    async def refuse(heard: Heard) -> None:
        if heard.headers.get("authorization", "").removeprefix("Bearer ") in given.tokens:
            scope = f"scope-{given.counts('GET /authorize')}"
            await given.refuse(heard, 403, error="insufficient_scope", scope=scope)
        else:
            await given.refuse(heard, 401)

    given.answer_mcp = refuse
    with pytest.raises((AuthorizationError, ConnectionClosed)):
        async with connect(given.url, *CLIENTS, auth=oauth()):
            pass
    assert given.counts("GET /authorize") == 3
    given.answer_mcp = lambda heard: given.refuse(heard, 401)
    with pytest.raises(AuthorizationError):
        async with connect(given.url, *CLIENTS, auth=oauth()):
            pass
    assert given.counts("GET /authorize") == 4


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
