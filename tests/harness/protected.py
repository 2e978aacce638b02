"""A running protected server whose tools show the identity of the caller, and a raw client for it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import uvicorn
from starlette.types import Receive, Scope, Send

from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import ResourceServer, TokenVerifier
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from tests.harness.checked_connections import INITIALIZED, STATELESS, initialize, lone, request
from tests.harness.issuer import Issuer

__all__ = ["STATELESS", "initialize"]

SCOPES = {
    ("tools/call", "whoami"): ["mcp:read"],
    ("tools/call", "delete"): ["mcp:write"],
    ("tools/call", "announce"): ["mcp:write"],
}
IMPLIES = {"mcp:admin": ["mcp:write"], "mcp:write": ["mcp:read"]}
LATEST, BATCHES = "2025-11-25", "2025-03-26"
BOTH = "application/json, text/event-stream"


class Tools:
    """Tools for servers of any revision."""

    types: Any

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.types is v2026_07_28.types else {}
        return self.types.ListToolsResult(tools=[], **more)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        text = await getattr(self, f"_{params.name}")(ctx)
        return self.types.CallToolResult(content=[self.types.TextContent(text=text)])

    async def _whoami(self, ctx: Any) -> str:
        return str(ctx.identity.subject)

    async def _delete(self, ctx: Any) -> str:
        return "deleted"

    async def _open(self, ctx: Any) -> str:
        """Needs no scope."""
        return json.dumps([ctx.identity.subject, ctx.identity.client, sorted(ctx.identity.scopes)])

    async def _headers(self, ctx: Any) -> str:
        return json.dumps(dict(ctx.origin.headers))

    async def _admin(self, ctx: Any) -> str:
        """Requires a scope."""
        ctx.identity.require("mcp:admin")
        return "done"

    async def _odd(self, ctx: Any) -> str:
        """Requires scopes that no token has, with characters that a challenge cannot contain."""
        ctx.identity.require("größe", 'a"b', "x y\r\nset-cookie: a=b", "offline_access", "mcp:admin")
        return "never"

    async def _late(self, ctx: Any) -> str:
        """Requires a scope after the response has begun."""
        await ctx.progress(1)
        return await self._admin(ctx)

    async def _ask(self, ctx: Any) -> str:
        """Ask the client twice, so that a stateless response contains a sealed state."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        wire = {"mode": "form", "message": "Who?", "requestedSchema": schema}
        for key in ("first", "second"):
            await ctx.ask_params(key, v2026_07_28.types.ElicitRequestFormParams.model_validate(wire))
        return str(ctx.identity.subject)

    async def _flood(self, ctx: Any) -> str:
        """Send notifications to all listening clients in an endless loop."""
        while True:
            await self.broadcast(lambda client: client.notify_tool_list_changed())  # type: ignore[attr-defined]
            await anyio.sleep(0)

    async def _announce(self, ctx: Any) -> str:
        """Notify all listening clients; return the identities of the connections."""
        await self.broadcast(lambda client: client.notify_tool_list_changed())  # type: ignore[attr-defined]
        return json.dumps([one.identity.subject for one in self.connections])  # type: ignore[attr-defined]


def _server(package: Any) -> Any:
    info = package.types.Implementation(name="protected", version="1")
    return type("Protected", (Tools, package.Server), {"types": package.types, "info": info})()


class Protected:
    """A protected endpoint.

    Attributes:
        url: URL of the protected resource.
        issuer: Issuer of its tokens.
    """

    def __init__(self, url: str, issuer: Issuer | None = None) -> None:
        self.url = url
        self.issuer = issuer
        self.client = httpx2.Client(timeout=20, trust_env=False)

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    @property
    def metadata_url(self) -> str:
        return f"{self.origin}/.well-known/oauth-protected-resource/mcp"

    def token(self, **changes: Any) -> str:
        """Return a token for this server with some changes to a valid one."""
        assert self.issuer is not None
        return self.issuer.token(self.url, **changes)

    def post(self, body: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """Post a message or raw bytes; return the response."""
        sent = {"content-type": "application/json", "accept": BOTH}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(self.url, content=content, headers=sent | dict(headers or {}))

    def ask(
        self, method: str, token: str | None = None, session: Any = None, headers: Any = None, **params: Any
    ) -> Any:
        """Send a request in a session, or a stateless request with matching headers; return the response."""
        if session is not None:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return self.post(body, token=token, headers={**session, **(headers or {})})
        named = next((str(params[one]) for one in ("name", "uri", "taskId") if one in params), "")
        told = {"mcp-protocol-version": STATELESS, "mcp-method": method}
        told |= {"mcp-name": named if named.isascii() and named.isprintable() else "x"} if named else {}
        return self.post(stateless(method, **params), token=token, headers={**told, **(headers or {})})

    def call(self, name: str, **more: Any) -> Any:
        """Send `tools/call`; return the response."""
        return self.ask("tools/call", name=name, **more)

    def session(self, token: str, revision: str = LATEST) -> dict[str, str]:
        """Begin a session; return the headers of its requests."""
        begun = self.post(initialize(revision), token=token)
        assert begun.status_code == 200, begun.text
        headers = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": revision}
        told = self.post(INITIALIZED, token=token, headers=headers)
        assert told.status_code == 202, told.text
        return headers


def called(name: str, id_: int = 1, **more: Any) -> dict[str, Any]:
    """Return a `tools/call` request of a stateful revision."""
    return request(id_, "tools/call", {"name": name, **more})


def stateless(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of a stateless revision."""
    return lone(1, method, {"elicitation": {"form": {}}}, **params)


def said(response: Any) -> Any:
    """Return the text of a tool result from a JSON or SSE response."""
    return answer(response)["result"]["content"][0]["text"]


def answer(response: Any) -> Any:
    """Return the last message of a response."""
    if response.headers["content-type"] == "application/json":
        return response.json()
    return json.loads([line for line in response.text.splitlines() if line.startswith("data: {")][-1][6:])


@contextmanager
def running(
    *verifiers: TokenVerifier, servers: Any = (), issuer: Issuer | None = None, store: Any = None, **options: Any
) -> Iterator[Protected]:
    """Run a protected endpoint in a thread, with `/mcp`, whose sessions may be in a store, and `/sse`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        auth = ResourceServer(url, *verifiers, **{"scopes": SCOPES, "implies": IMPLIES, **options})
        servers = servers or [_server(package) for package in (v2025_03_26, v2025_11_25, v2026_07_28)]
        app, legacy = HttpApp(*servers, auth=auth, store=store), SseApp(*servers, auth=auth)

        async def either(scope: Scope, receive: Receive, send: Send) -> None:
            chosen = legacy if scope.get("path") in ("/sse", "/messages") else app
            await chosen(scope, receive, send)

        config = uvicorn.Config(either, http="auto", lifespan="on", ws="none", log_config=None)
        config.timeout_graceful_shutdown, config.timeout_keep_alive = 1, 60  # longer than clients reuse connections
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                threading.Event().wait(0.005)
            found = Protected(url, issuer)
            with found.client:
                yield found
        finally:
            for one in (app, legacy):
                one.leave()
            server.should_exit = True
            thread.join()
