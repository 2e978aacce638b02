"""MCP Apps: metadata of tools and resources, its visibility to clients, and the content policies of hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen import v2026_07_28
from mcp_bindgen.extensions.apps import (
    MIME_TYPE,
    content_security_policy,
    permissions_policy,
    resource_meta,
    shows_apps,
    tool_meta,
    tools_for,
)
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import apps
from mcp_bindgen.v2026_07_28.extensions.apps import meta, types
from tests.harness.checked_connections import connected
from tests.harness.effort import each

UI = "io.modelcontextprotocol/ui"
HOST = {"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
SETTINGS: list[Any] = [{}, {"mimeTypes": ["text/html"]}, {"mimeTypes": "text/html;profile=mcp-app"}, None]
NO_HOSTS = [{}, *({"extensions": declared} for declared in ({}, [UI], *({UI: settings} for settings in SETTINGS)))]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def tool(name: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **({} if meta is None else {"_meta": meta})}


@each("capabilities", NO_HOSTS)
def test_a_client_without_app_support_gets_tools_without_apps(capabilities: dict[str, Any]) -> None:
    plain, linked = tool("plain"), tool("linked", {**tool_meta("ui://x/y"), "com.example/own": 1})
    tools = [plain, linked, tool("hidden", tool_meta("ui://x/y", ["app"]))]
    assert not shows_apps(capabilities)
    assert tools_for(capabilities, tools) == [plain, tool("linked", {"com.example/own": 1})]
    typed = [mcp.Tool.model_validate(one) for one in tools]
    assert [one.model_dump() for one in tools_for(capabilities, typed)] == tools_for(capabilities, tools)
    assert (tools_for(HOST, tools), tools_for(HOST, typed)) == (tools, typed)
    assert linked["_meta"]["ui"] == {"resourceUri": "ui://x/y"}  # the input is unchanged


def test_an_unknown_tool_visibility_is_refused() -> None:
    nobody: Any = ["model", "nobody"]
    with pytest.raises(ValueError, match="no visibility 'nobody': use model, app"):
        tool_meta(None, nobody)


@pytest.mark.parametrize("uri", ["http://x", "ui:", "ui://", "UI://x"])
def test_an_app_uri_without_the_ui_scheme_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="begins with ui://"):
        tool_meta(uri)


DOMAINS = ["example.com", "https://example.com/path", "https://example.com; script-src *", "https://example.com *", "*"]


@each("domain", [*DOMAINS, "https://*", "'unsafe-eval'", "data:", "javascript://x", "https://a\nb", ""])
def test_domains_that_are_no_origins_are_refused_and_left_out_of_policies(domain: str) -> None:
    with pytest.raises(ValueError, match="no origin"):
        resource_meta(connect_domains=[domain])
    assert content_security_policy({"csp": {"connectDomains": [domain]}}) == content_security_policy(None)


def test_a_policy_allows_only_declared_sources_and_permissions() -> None:
    denied = {f"{kind}-src 'none'" for kind in ("default", "connect", "frame", "object")}
    assert {*denied, "base-uri 'self'"} <= {*content_security_policy({}).split("; ")}
    meta = resource_meta(
        connect_domains=["https://api.example.com", "wss://*.example.com:8443"],
        resource_domains=["https://cdn.example.com"],
        permissions=["camera", "clipboardWrite"],
    )["ui"]
    rules = dict(rule.split(" ", 1) for rule in content_security_policy(meta).split("; "))
    assert rules["connect-src"] == "https://api.example.com wss://*.example.com:8443"
    assert (rules["script-src"], rules["frame-src"]) == ("'self' 'unsafe-inline' https://cdn.example.com", "'none'")
    assert permissions_policy(meta) == "camera; clipboard-write"
    assert permissions_policy({"permissions": {"camera; fullscreen *": {}}}) == ""


@given(
    st.dictionaries(st.sampled_from(["csp", "permissions", "domain"]), JSON) | JSON.map(lambda value: {"csp": value})
)
def test_server_metadata_cannot_change_the_directives_of_a_policy(meta: dict[str, Any]) -> None:
    policy = content_security_policy(meta)
    assert [rule.partition(" ")[0] for rule in policy.split("; ")] == [
        rule.partition(" ")[0] for rule in content_security_policy(None).split("; ")
    ]
    assert re.fullmatch(r"[-a-zA-Z0-9 ':;/.*]+", policy)


@given(JSON, JSON)
def test_invalid_capabilities_and_metadata_do_not_hide_other_tools(capabilities: Any, meta: Any) -> None:
    tools = [tool("plain"), tool("odd", meta)]
    assert tools_for({"extensions": {"io.modelcontextprotocol/ui": capabilities}}, tools)[0] == tools[0]


class Written(apps.Server):
    """Server with handwritten handlers and typed metadata."""

    info = mcp.Implementation(name="dice", version="1")

    def list_tools(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        roll = mcp.Tool(name="roll", input_schema=mcp.ToolInputSchema())
        linked = meta.TOOL_UI.put(roll, types.McpUiToolMeta(resource_uri="ui://dice/board", visibility=["app"]))
        settings = ctx.extension(apps.EXTENSION)
        said = mcp.Tool(name=f"for {settings and settings.mime_types}", input_schema=mcp.ToolInputSchema())
        return mcp.ListToolsResult(tools=tools_for(ctx.peer_capabilities, [linked, said]))


class LaterHost(apps.Client):
    """Host of a later version, with a setting that this version does not know."""

    info = mcp.Implementation(name="host", version="1")
    extension_settings: Mapping[str, Any] = {apps.EXTENSION.id: {"mimeTypes": [MIME_TYPE], "features": ["streaming"]}}


async def test_handlers_write_and_hosts_read_typed_metadata() -> None:
    async with connected(LaterHost(), Written()) as connection:
        roll, said = (await connection.client.list_tools()).tools
        assert meta.TOOL_UI.read(roll) == types.McpUiToolMeta(resource_uri="ui://dice/board", visibility=["app"])
        assert said.name == f"for {[MIME_TYPE]}"
    async with connected(v2026_07_28.Client(), Written()) as connection:
        assert [tool.name for tool in (await connection.client.list_tools()).tools] == ["for None"]
