"""Web pages as clients: preflights and headers of CORS for allowed origins, and a page in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.auth import JwtVerifier, ResourceServer, StaticTokens
from mcp_bindgen.http import HttpApp, SseApp
from tests.harness.any_revision import Tools, of_revision
from tests.harness.browser import chromium
from tests.harness.checked_connections import initialize
from tests.harness.effort import each
from tests.harness.file_server import serving
from tests.harness.http_wires import BOTH, LATEST
from tests.harness.protected import running

PAGE, TOKEN = "https://app.example.com", "a-token-that-no-page-guesses"
VERIFIERS = StaticTokens({TOKEN: "ada"}), JwtVerifier("https://issuer.example.com")  # the issuer is in the metadata
METADATA = "/.well-known/oauth-protected-resource/mcp"
servers = [of_revision(Tools, package) for package in (v2025_11_25, v2026_07_28)]


def auth() -> ResourceServer:
    return ResourceServer("http://localhost/mcp", *VERIFIERS)


def mounted() -> Any:
    policy = auth()
    return Starlette(routes=[*policy.routes(), Mount("/", app(HttpApp, auth=policy))])


def app(kind: Any, **options: Any) -> Any:
    return kind(*(one() for one in servers), allowed_origins=[PAGE], allowed_hosts=["localhost"], **options)


@each(
    ("made", "path", "method"),
    [
        (lambda: app(HttpApp), "/mcp", "POST"),
        (lambda: app(HttpApp, auth=auth()), "/mcp", "DELETE"),
        (lambda: app(HttpApp, auth=auth(), sessions=False), "/mcp", "POST"),
        (lambda: app(HttpApp, auth=auth()), METADATA, "GET"),
        (lambda: app(SseApp), "/messages", "POST"),
        (lambda: app(SseApp, auth=auth()), "/sse", "GET"),
        (lambda: app(SseApp, auth=auth()), METADATA, "GET"),
        (mounted, METADATA, "GET"),
    ],
)
async def test_preflights_of_allowed_origins_need_no_token(made: Any, path: str, method: str) -> None:
    asked = {"access-control-request-method": method, "access-control-request-headers": "authorization,mcp-param-x"}
    async with AsyncClient(transport=ASGITransport(made()), base_url="http://localhost") as client:
        found = await client.options(path, headers={"origin": PAGE, **asked})
        assert (found.status_code, found.headers["access-control-allow-headers"]) == (200, asked.popitem()[1])
        assert found.headers["access-control-allow-origin"] in (PAGE, "*")
        assert method in found.headers["access-control-allow-methods"]
        refused = await client.options(path, headers={"origin": "https://evil.example.com", **asked})
        assert refused.status_code == 403 or refused.headers["access-control-allow-origin"] == "*"


@each("token", [TOKEN, None])
async def test_pages_of_allowed_origins_read_responses_and_errors(token: str | None) -> None:
    headers = {"accept": BOTH} | ({"authorization": f"Bearer {token}"} if token else {})
    http = app(HttpApp, auth=auth())
    async with http.lifespan(), AsyncClient(transport=ASGITransport(http), base_url="http://localhost") as client:
        for origin, status in ((PAGE, 200 if token else 401), ("https://evil.example.com", 403)):
            found = await client.post("/mcp", json=initialize(LATEST), headers={**headers, "origin": origin})
            assert found.status_code == status
            assert found.headers.get("access-control-allow-origin") == (PAGE if origin == PAGE else None)
            if origin == PAGE:
                assert ("mcp-session-id" if token else "www-authenticate") in found.headers
                exposed = found.headers["access-control-expose-headers"]
                assert exposed == "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After"
                assert found.headers["vary"] == "Origin"


SCRIPT = """
async ([url, initialize, token]) => {
  const refused = await fetch(url, { method: "POST", body: "{}", headers: { "content-type": "application/json" } });
  const challenge = refused.headers.get("www-authenticate");
  const metadata = await (await fetch(challenge.match(/resource_metadata="([^"]+)"/)[1], {
    headers: { "mcp-protocol-version": "2025-11-25" } })).json();
  const headers = { authorization: "Bearer " + token, "content-type": "application/json",
    accept: "application/json, text/event-stream" };
  const post = (message) => fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
  headers["mcp-session-id"] = (await post(initialize)).headers.get("mcp-session-id");
  headers["mcp-protocol-version"] = "2025-11-25";
  const told = await post({ jsonrpc: "2.0", method: "notifications/initialized" });
  const stream = await fetch(url, { headers });
  const answer = await (await post({ jsonrpc: "2.0", id: 1, method: "ping" })).json();
  const ended = await fetch(url, { method: "DELETE", headers });
  const sse = (await fetch(url.replace("/mcp", "/sse"), { headers })).body.getReader();
  const endpoint = new TextDecoder().decode((await sse.read()).value);
  return [refused.status, metadata.resource, told.status, stream.headers.get("content-type"), answer.result,
    ended.status, endpoint.includes("session_id")];
}
"""


@pytest.mark.full
def test_a_page_in_a_browser_is_a_client_with_a_token() -> None:
    with running(*VERIFIERS) as server, serving() as files, chromium() as browser:
        page = browser.new_page()
        page.goto(files.file("/page", b"<title>client</title>", Content_Type="text/html"))
        found = page.evaluate(SCRIPT, [server.url, initialize(LATEST), TOKEN])
        assert found == [401, server.url, 202, "text/event-stream", {}, 204, True]
        page.goto("data:text/html,<title>a page without an origin</title>")
        with pytest.raises(Exception, match="Failed to fetch"):
            page.evaluate(SCRIPT, [server.url, initialize(LATEST), TOKEN])
