"""Scopes that a contract states beside its operations are demanded by every server of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import mcp_bindgen.app as app
from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import StaticTokens
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import Identity
from tests.support.protected import LATEST, STATELESS, Protected, answer, running, stateless

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


class Files(app.Contract):
    """Files that are not there."""

    catalog = app.Catalog.of(DOCUMENT)
    revisions = (v2025_03_26, v2025_11_25, v2026_07_28)

    @app.tool("read")
    async def read(self, ctx: Any) -> str:
        return "done"

    @app.tool("move")
    async def move(self, ctx: Any) -> str:
        return "done"

    @app.tool("help")
    async def help(self, ctx: Any) -> str:
        return str(ctx.identity.subject)

    @app.prompt("tidy")
    async def tidy(self, ctx: Any) -> str:
        return "done"

    @app.resource("files://x/root")
    async def root(self, ctx: Any) -> str:
        return "done"

    @app.template("files://x/{name}", dict[str, str])
    async def any(self, variables: Any, ctx: Any) -> str:
        return "done"

    @app.template("files://y/{name}", dict[str, str])
    async def other(self, variables: Any, ctx: Any) -> str:
        return "done"


OPERATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "read"}, "files:read"),
    ("tools/call", {"name": "move"}, "files:read files:write"),
    ("tools/call", {"name": "help"}, ""),
    ("prompts/get", {"name": "tidy"}, "files:write"),
    ("resources/read", {"uri": "files://x/root"}, "files:read files:root"),  # the template has it, too
    ("resources/read", {"uri": "files://x/else"}, "files:read"),
    ("resources/read", {"uri": "files://y/else"}, ""),
]
KEYS = {
    "nothing-is-allowed-to-it": Identity(subject="bob"),
    "everything-is-allowed-it": Identity(
        subject="alice", scopes=frozenset({"files:read", "files:write", "files:root"})
    ),
}
NOTHING, EVERYTHING = KEYS


def asked(server: Protected, method: str, params: dict[str, Any], token: str, session: dict[str, str]) -> Any:
    if session:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return server.post(message, token=token, headers=session)
    named = next(iter(params.values()))
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method, "mcp-name": named}
    return server.post(stateless(method, **params), token=token, headers=headers)


def test_every_operation_needs_what_the_contract_states() -> None:
    with running(StaticTokens(KEYS), servers=Files().servers(), scopes={}, implies={}) as server:
        for revision in (STATELESS, LATEST, "2025-03-26"):
            for token in KEYS:
                session = {} if revision == STATELESS else server.session(token, revision)
                for method, params, needed in OPERATIONS:
                    response = asked(server, method, params, token, session)
                    if token == NOTHING and needed:
                        assert response.status_code == 403, (revision, method, params)
                        assert f'scope="{needed}"' in response.headers["www-authenticate"]
                    else:
                        assert response.status_code == 200, response.text
                        assert "result" in answer(response), (revision, method, params)


def test_a_name_that_a_resource_does_not_have_hides_nothing() -> None:
    """Members that a method does not know are ignored, also when it is decided what is called."""
    with running(StaticTokens(KEYS), servers=Files().servers(), scopes={}, implies={}) as server:
        for revision in (STATELESS, LATEST, "2025-03-26"):
            session = {} if revision == STATELESS else server.session(NOTHING, revision)
            for name in ("help", "files://y/else", ""):
                params = {"uri": "files://x/root", "name": name}
                response = asked(server, "resources/read", params, NOTHING, session)
                assert response.status_code == 403, (revision, name)
                assert 'scope="files:read files:root"' in response.headers["www-authenticate"]


def test_what_completes_or_follows_an_entry_needs_what_the_entry_needs() -> None:
    argument = {"name": "name", "value": ""}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "tidy"}, "argument": argument}, "files:write"),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "files://x/{name}", "name": "help"}, "argument": argument},
            "files:read",
        ),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["files://y/else", "files://x/root"]}},
            "files:read files:root",
        ),
    ]
    with running(StaticTokens(KEYS), servers=Files().servers(), scopes={}, implies={}) as server:
        for method, params, needed in cases:
            headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
            refused = server.post(stateless(method, **params), token=NOTHING, headers=headers)
            assert refused.status_code == 403, (method, params)
            assert f'scope="{needed}"' in refused.headers["www-authenticate"]
        session = server.session(NOTHING)
        for method, params, needed in cases[:2]:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            assert (
                f'scope="{needed}"' in server.post(message, token=NOTHING, headers=session).headers["www-authenticate"]
            )


def test_what_the_endpoint_asks_for_is_needed_beside() -> None:
    with running(StaticTokens(KEYS), servers=Files().servers(), scopes={"tools/call": ["call"]}, implies={}) as server:
        refused = asked(server, "tools/call", {"name": "move"}, EVERYTHING, {})
        assert 'scope="call files:read files:write"' in refused.headers["www-authenticate"]


def test_clients_see_the_scopes() -> None:
    with running(StaticTokens(KEYS), servers=Files().servers(), scopes={}, implies={}) as server:
        headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"}
        listed = answer(server.post(stateless("tools/list"), token=NOTHING, headers=headers))["result"]["tools"]
        assert json.dumps(listed) == json.dumps(DOCUMENT["tools"])


def test_a_contract_with_scopes_is_not_served_to_everybody() -> None:
    with pytest.raises(ValueError, match="Files needs scopes, and tokens are not verified"):
        HttpApp(*Files().servers())
