"""Discovery of metadata: permitted locations and exact issuers."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_bindgen.auth import KnownClient, client_metadata
from mcp_bindgen.auth.client.clients import is_document_url
from mcp_bindgen.auth.client.tokens import Grant
from mcp_bindgen.auth.metadata import (
    BadMetadata,
    assumed_server,
    canonical,
    read_resource,
    resource_metadata_urls,
    server_metadata_urls,
)
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from tests.harness.authorization_world import World, call, oauth
from tests.harness.effort import each
from tests.harness.scripted_http_server import Heard

MCP, BASE = "https://mcp.example/mcp", "https://mcp.example"
WELL_KNOWN = f"{BASE}/.well-known/"
PLACE = f"{WELL_KNOWN}oauth-protected-resource"


@each(
    ("url", "expected"),
    [
        ("https://MCP.example:443", "https://mcp.example"),
        ("HTTPS://mcp.example/", "https://mcp.example"),
        ("https://mcp.example:8443/a/?key=secret#x", "https://mcp.example:8443/a/"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
    ],
)
def test_server_urls_are_canonicalized(url: str, expected: str) -> None:
    assert canonical(url) == expected


def test_metadata_urls_follow_the_order_of_the_specification() -> None:
    assert resource_metadata_urls(f"{BASE}/a/mcp?x=1") == [f"{PLACE}/a/mcp?x=1", f"{PLACE}/a/mcp", PLACE]
    assert resource_metadata_urls(f"{BASE}?x=1") == [f"{PLACE}?x=1", PLACE]
    assert resource_metadata_urls(BASE) == [PLACE]
    assert resource_metadata_urls(f"{MCP}/") == [f"{PLACE}/mcp/", f"{PLACE}/mcp", PLACE]
    assert server_metadata_urls(f"{BASE}/tenant") == [
        f"{WELL_KNOWN}oauth-authorization-server/tenant",
        f"{WELL_KNOWN}openid-configuration/tenant",
        "https://mcp.example/tenant/.well-known/openid-configuration",
    ]
    expected = [f"{WELL_KNOWN}oauth-authorization-server", f"{WELL_KNOWN}openid-configuration"]
    assert server_metadata_urls(BASE) == server_metadata_urls(f"{BASE}/") == expected


@each(
    ("resource", "place", "url"),
    [
        *((MCP, "anywhere", MCP), (f"{MCP}/", "anywhere", MCP), ("https://MCP.example:443/mcp", "anywhere", f"{MCP}/")),
        *((MCP, "anywhere", f"{MCP}?key=1"), (f"{MCP}?key=1", "anywhere", f"{MCP}?key=1")),
        *((BASE, PLACE, MCP), (f"{BASE}/", PLACE, MCP), (f"{BASE}/a", f"{PLACE}/a", f"{BASE}/a/mcp")),
    ],
)
def test_metadata_of_the_server_or_of_a_parent_at_its_own_url_is_accepted(resource: str, place: str, url: str) -> None:
    assert read_resource({"resource": resource}, place, url).resource == resource


@each(
    ("resource", "place", "url"),
    [
        *((f"{BASE}{rest}", "anywhere", MCP) for rest in ("/mc", "/mcp/deeper", ":8443/mcp", ".evil/mcp", "@evil/mcp")),
        *((other, "anywhere", MCP) for other in ("http://mcp.example/mcp", "mcp.example/mcp", "https://[broken/mcp")),
        *((BASE, f"{PLACE}/mcp", MCP), (f"{BASE}/a", PLACE, f"{BASE}/a/mcp")),
        (f"{MCP}?key=2", "anywhere", f"{MCP}?key=1"),
    ],
)
def test_metadata_of_another_resource_is_refused(resource: str, place: str, url: str) -> None:
    with pytest.raises(BadMetadata):
        read_resource({"resource": resource}, place, url)


def test_client_metadata_documents_need_an_https_url_with_a_path() -> None:
    assert is_document_url("https://client.example/metadata.json")
    wrong = ["http://a.example/x", "https://a.example", "https://a.example/", "https://a/../x", "https://u@a/x", "a"]
    assert not any(map(is_document_url, [*wrong, "https://a.example/x#y"]))
    document = client_metadata("https://a.example/x", "name", ["http://127.0.0.1/callback"])
    assert document["client_id"] == "https://a.example/x"
    with pytest.raises(ValueError, match="https URL with a path"):
        oauth(client_metadata_url="https://a.example")
    with pytest.raises(ValueError, match="different issuers"):
        oauth(client=[KnownClient("a"), KnownClient("b")])


@each("kept", [None, {}, {"issuer": 1}, {"a": 1}, {"scopes": 7}, {"issuer": "i", "resource": "r"}])
def test_an_invalid_stored_grant_is_ignored(kept: Any) -> None:
    assert Grant.load(kept) is None


# --- servers of MCP 2025-03-26 ------------------------------------------------------------------------------------


async def old(given: World, documents: dict[str, Any]) -> list[Any]:
    """Call a server that is its own authorization server and serves these documents; return the result."""
    play = given.play_issuing
    given.issuing.play = None  # type: ignore[assignment]

    async def both(heard: Heard) -> None:
        if heard.path in documents:
            document = documents[heard.path]
            await (heard.end(document) if isinstance(document, int) else heard.json(document))
        elif heard.path.startswith("/.well-known"):
            await heard.end(404)
        elif heard.path == "/mcp":
            await given.serve(heard)
        else:
            await play(heard)

    given.mcp.play, given.issuing = both, given.mcp
    given.challenge = {"resource_metadata": ""}
    return await call(given.url, oauth())


async def test_a_server_without_any_metadata_is_its_own_authorization_server(given: World) -> None:
    (token,) = await old(given, {})
    assert str(token).startswith("at-")
    assert given.queries[0]["resource"] == given.url
    assert assumed_server(given.url).authorization_endpoint == f"{given.issuer}/authorize"


@pytest.mark.parametrize("answer", [{}, {"issuer": "https://evil.example"}, 500, 429, 403, 401, 410], ids=str)
async def test_root_metadata_of_a_2025_03_26_server_is_used_if_present(given: World, answer: Any) -> None:
    """Only 404 and 410 mean that there is no metadata."""
    base = given.url.removesuffix("/mcp")
    document = {"issuer": base, "token_endpoint_auth_methods_supported": ["none"], "token_endpoint": f"{base}/token"}
    document |= {"authorization_endpoint": f"{base}/authorize", "registration_endpoint": f"{base}/register"}
    found = document | answer if isinstance(answer, dict) else answer
    (result,) = await old(given, {"/.well-known/oauth-authorization-server": found})
    if answer in ({}, 410):
        assert str(result).startswith("at-")
    else:
        assert isinstance(result, AuthorizationError)
        assert given.counts("GET /authorize") == given.counts("POST /token") == 0
