"""Every server of a contract requires the scopes that the contract states for its operations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import mcp_bindgen.app as app
from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import StaticTokens
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import Identity
from tests.harness.effort import each
from tests.harness.protected import LATEST, STATELESS, Protected, answer, running

ANYTHING = {"type": "object"}
DOCUMENT = {
    "tools": [
        {"name": "read", "inputSchema": ANYTHING, "x-mcp-scopes": ["files:read"]},
        {"name": "move", "inputSchema": ANYTHING, "x-mcp-scopes": ["files:read", "files:write"]},
        {"name": "help", "inputSchema": ANYTHING},
    ],
    "prompts": [{"name": "tidy", "x-mcp-scopes": ["files:write"]}],
    "resources": [{"name": "root", "uri": "files://x/root", "x-mcp-scopes": ["files:root"]}],
    "resourceTemplates": [
        {"name": "any", "uriTemplate": "files://x/{name}", "x-mcp-scopes": ["files:read"]},
        {"name": "other", "uriTemplate": "files://y/{name}"},
    ],
}


def done() -> Any:
    async def handle(self: Any, *arguments: Any) -> str:
        return "done"

    return handle


class Files(app.Contract):
    """Contract with tools, a prompt and resources of files."""

    catalog = app.Catalog.of(DOCUMENT)
    revisions = (v2025_03_26, v2025_11_25, v2026_07_28)

    read, move, help = app.tool("read")(done()), app.tool("move")(done()), app.tool("help")(done())
    tidy, root = app.prompt("tidy")(done()), app.resource("files://x/root")(done())
    any = app.template("files://x/{name}", dict[str, str])(done())
    other = app.template("files://y/{name}", dict[str, str])(done())


OPERATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "read"}, "files:read"),
    ("tools/call", {"name": "move"}, "files:read files:write"),
    ("tools/call", {"name": "help"}, ""),
    ("prompts/get", {"name": "tidy"}, "files:write"),
    ("resources/read", {"uri": "files://x/root"}, "files:read files:root"),  # includes the scope of the template
    ("resources/read", {"uri": "files://x/else"}, "files:read"),
    ("resources/read", {"uri": "files://y/else"}, ""),
]
KEYS = {
    "nothing-is-allowed-to-it": Identity(subject="bob"),
    "everything-is-allowed-it": Identity(subject="al", scopes=frozenset({"files:read", "files:write", "files:root"})),
}
NOTHING, EVERYTHING = KEYS


@pytest.fixture(scope="module")
def server() -> Iterator[Protected]:
    with running(StaticTokens(KEYS), servers=[Files()], scopes={}, implies={}) as found:
        yield found


def needs(response: Any, scopes: str) -> None:
    """Check that a request was refused because these scopes are missing."""
    assert response.status_code == 403, response.text
    assert f'scope="{scopes}"' in response.headers["www-authenticate"]


@each("revision", [STATELESS, LATEST, "2025-03-26"])
def test_every_operation_requires_the_scopes_of_the_contract(server: Protected, revision: str) -> None:
    for token in KEYS:
        session = None if revision == STATELESS else server.session(token, revision)
        for method, params, needed in OPERATIONS:
            response = server.ask(method, token, session, **params)
            if token == NOTHING and needed:
                needs(response, needed)
            else:
                assert response.status_code == 200, response.text
                assert "result" in answer(response), (revision, method, params)
    # unknown parameters of a method do not affect which operation is checked
    session = None if revision == STATELESS else server.session(NOTHING, revision)
    for name in ("help", "files://y/else", ""):
        headers = {"mcp-name": "files://x/root"}
        refused = server.ask("resources/read", NOTHING, session, headers, uri="files://x/root", name=name)
        needs(refused, "files:read files:root")


def test_completion_and_subscription_require_the_scopes_of_the_entry(server: Protected) -> None:
    followed = {"resourceSubscriptions": ["files://y/else", "files://x/root"]}
    needs(server.ask("subscriptions/listen", NOTHING, notifications=followed), "files:read files:root")
    resource = {"type": "ref/resource", "uri": "files://x/{name}", "name": "help"}
    for session in (None, server.session(NOTHING)):
        for ref, needed in (({"type": "ref/prompt", "name": "tidy"}, "files:write"), (resource, "files:read")):
            argument = {"name": "name", "value": ""}
            needs(server.ask("completion/complete", NOTHING, session, ref=ref, argument=argument), needed)


def test_scopes_of_the_endpoint_and_the_contract_add_up() -> None:
    with running(StaticTokens(KEYS), servers=[Files()], scopes={"tools/call": ["call"]}, implies={}) as server:
        needs(server.call("move", token=EVERYTHING), "call files:read files:write")


def test_clients_see_the_scopes(server: Protected) -> None:
    assert json.dumps(answer(server.ask("tools/list", EVERYTHING))["result"]["tools"]) == json.dumps(DOCUMENT["tools"])
    assert [tool["name"] for tool in answer(server.ask("tools/list", NOTHING))["result"]["tools"]] == ["help"]


def test_a_contract_with_scopes_is_not_served_without_auth() -> None:
    with pytest.raises(ValueError, match="Files needs scopes, and tokens are not verified"):
        HttpApp(Files())
