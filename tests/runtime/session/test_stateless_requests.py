"""Stateless requests: each is handled by itself, also on a connection that has a handshake."""

from __future__ import annotations

import json
import random
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import ConnectionClosed, Json, Notification, ProtocolError, RequestMethod, handles
from mcp_bindgen.runtime.protocol.connection import Connection, State
from mcp_bindgen.runtime.protocol.errors import UnsupportedRevision
from mcp_bindgen.runtime.protocol.events import Answered, CancelRequested, Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.jsonrpc import typed_params
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import (
    INITIALIZED,
    STATEFUL,
    STATELESS,
    answer,
    bindings,
    connected,
    copied,
    dispatchers_of,
    essence,
    feed,
    initialize,
    lone,
    notification,
    only,
    oracle,
    own,
    played,
    refusal,
    request,
    slow,
    spelled,
    stating,
    takes,
    until,
)
from tests.harness.effort import each, examples
from tests.harness.json_instances import of_definitions
from tests.harness.meta_keys import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, SERVER_INFO, VERSION

EVERY = [*STATEFUL, STATELESS]
LATEST = STATEFUL[-1]
PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED = -32022


# --- servers --------------------------------------------------------------------------------------------------


class Works:
    """Tools that are the same in all revisions."""

    def __init__(self) -> None:
        self.stopped, self.go = list[str](), anyio.Event()

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        return bindings(ctx.revision).types.ListToolsResult(tools=[])

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        types = bindings(ctx.revision).types
        if params.name == "wait":
            try:
                await self.go.wait()
            except BaseException:
                self.stopped.append(ctx.revision)
                raise
        said = f"{ctx.revision} {ctx.peer_info.name if ctx.peer_info else None} {sorted(ctx.peer_capabilities)}"
        return types.CallToolResult(content=[types.TextContent(text=said)])


KINDS = {one: type(f"Works{one}", (Works, bindings(one).Server), {}) for one in EVERY}


def works(revision: str) -> Any:
    """Return a server with these tools."""
    server: Any = KINDS[revision]()
    server.info = bindings(revision).types.Implementation(name=f"works-{revision}", version="1")
    return server


def text(answered: Any) -> str:
    """Return the text of a tool's result."""
    return str(answered["result"]["content"][0]["text"])


def code(answered: Any) -> int:
    """Return the code of an error."""
    return int(answered["error"]["code"])


# --- several eras on one connection ---------------------------------------------------------------------------


async def test_stateless_requests_work_before_during_and_after_a_handshake() -> None:
    async with played(*map(works, [LATEST, *STATEFUL[:-1], STATELESS])) as (client, _):
        assert text(await client.ask(lone(1, "tools/call", name="x"))) == f"{STATELESS} test []"
        assert (await client.ask(initialize(LATEST, {"roots": {}}, id_=2)))["result"]["protocolVersion"] == LATEST
        between = await client.ask(lone(3, "tools/call", {"sampling": {}}, name="x"))
        assert text(between) == f"{STATELESS} test ['sampling']"
        assert code(await client.ask(request(4, "tools/call", {"name": "x"}))) == INVALID
        await client.send(INITIALIZED)
        for turn in range(5, 25, 2):
            assert text(await client.ask(request(turn, "tools/call", {"name": "x"}))) == f"{LATEST} test ['roots']"
            assert text(await client.ask(lone(turn + 1, "tools/call", name="x"))) == f"{STATELESS} test []"
        assert await client.ask(request(30, "ping")) == {"jsonrpc": "2.0", "id": 30, "result": {}}
        assert code(await client.ask(lone(31, "ping"))) == UNKNOWN


@each("revision", STATEFUL)
async def test_each_revision_is_served_beside_the_stateless_one(revision: str) -> None:
    async with played(works(revision), *[works(one) for one in EVERY if one != revision]) as (client, _):
        answered = await client.introduce(revision)
        assert answered["result"]["protocolVersion"] == revision
        assert answered["result"]["serverInfo"]["name"] == f"works-{revision}"
        assert text(await client.ask(request(1, "tools/call", {"name": "x"}))) == f"{revision} test []"
        assert text(await client.ask(lone(1, "tools/call", name="x"))) == f"{STATELESS} test []"


async def test_initialize_with_a_stateless_revision_selects_the_stateful_revision() -> None:
    async with played(works(LATEST), works(STATELESS)) as (client, _):
        assert (await client.introduce(STATELESS))["result"]["protocolVersion"] == LATEST


async def test_initialize_to_a_stateless_server_returns_the_supported_revisions() -> None:
    async with played(works(STATELESS)) as (client, _):
        for message in (initialize(LATEST), lone(7, "initialize", protocolVersion=LATEST, capabilities={})):
            answered = await client.ask(message)
            assert (answered["id"], code(answered)) == (message["id"], UNKNOWN)
            assert answered["error"]["data"] == {"supported": [STATELESS]}
        assert text(await client.ask(lone(8, "tools/call", name="x"))) == f"{STATELESS} test []"


async def test_initialize_with_stateless_metadata_is_refused() -> None:
    async with played(works(LATEST), works(STATELESS)) as (client, _):
        message = initialize(LATEST)
        message["params"]["_meta"] = stating()
        answered = await client.ask(message)
        assert (code(answered), answered["error"]["data"]) == (UNKNOWN, {"supported": [STATELESS, LATEST]})
        assert (await client.introduce(LATEST))["result"]["protocolVersion"] == LATEST


@each("stated", ["1999-01-01", "2099-01-01", "", "DRAFT", "2026-07-28 ", "2025-11-25", "é"])
@each("handshake", [False, True])
async def test_an_unsupported_version_is_refused_with_the_supported_versions(stated: str, handshake: bool) -> None:
    async with played(works(LATEST), works(STATELESS)) as (client, _):
        if handshake:
            await client.introduce(LATEST)
        for method in ("tools/list", "server/discover", "no/such"):
            answered = await client.ask(request(5, method, {"_meta": stating(revision=stated)}))
            assert (answered["id"], code(answered)) == (5, UNSUPPORTED)
            assert answered["error"]["data"] == {"supported": [STATELESS, LATEST], "requested": stated}


@each("stated", [5, True, [STATELESS], {"x": STATELESS}, 1.5])
@each("handshake", [False, True])
async def test_versions_that_are_not_strings_are_invalid(stated: object, handshake: bool) -> None:
    async with played(works(LATEST), works(STATELESS)) as (client, _):
        if handshake:
            await client.introduce(LATEST)
        assert code(await client.ask(request(5, "tools/list", {"_meta": stating(revision=stated)}))) == PARAMS


@each("missing", [VERSION, CLIENT_CAPABILITIES, "_meta", "params"])
async def test_requests_without_the_required_metadata_are_invalid(missing: str) -> None:
    async with played(works(STATELESS)) as (client, _):
        for method in ("tools/list", "tools/call", "server/discover", "subscriptions/listen"):
            message = lone("x", method, name="x", notifications={})
            message["params"]["_meta"].pop(missing, None)
            message["params"].pop(missing, None)
            message.pop(missing, None)
            answered = await client.ask(message)
            assert (answered["id"], code(answered)) == ("x", PARAMS)


async def test_the_client_info_is_optional() -> None:
    async with played(works(STATELESS)) as (client, _):
        message = lone(1, "tools/call", name="x")
        del message["params"]["_meta"][CLIENT_INFO]
        assert text(await client.ask(message)) == f"{STATELESS} None []"


@each("method", ["server/discover", "subscriptions/listen"])
async def test_stateless_methods_need_stateless_metadata(method: str) -> None:
    async with played(works(LATEST), works(STATELESS)) as (client, _):
        assert code(await client.ask(request(1, method, {"notifications": {}}))) == PARAMS
        await client.introduce(LATEST)
        assert code(await client.ask(request(2, method, {"notifications": {}}))) == PARAMS


@each("method", ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
async def test_removed_methods_are_not_found(method: str) -> None:
    for servers in ([works(STATELESS)], [works(LATEST), works(STATELESS)]):
        async with played(*servers) as (client, _):
            answered = await client.ask(lone("é", method, level="debug", uri="x:y"))
            assert (answered["id"], code(answered)) == ("é", UNKNOWN)


async def test_client_capabilities_are_not_kept_between_requests() -> None:
    async with played(works(STATELESS)) as (client, _):
        assert text(await client.ask(lone(1, "tools/call", {"roots": {}}, name="x"))) == f"{STATELESS} test ['roots']"
        assert text(await client.ask(lone(1, "tools/call", name="x"))) == f"{STATELESS} test []"


async def test_an_id_in_use_is_refused_for_stateful_and_stateless_requests() -> None:
    server, old = works(STATELESS), works(LATEST)
    async with played(old, server) as (client, _):
        await client.introduce(LATEST)
        await client.send(lone(1, "tools/call", name="wait"))
        assert code(await client.ask(lone(1, "tools/call", name="x"))) == INVALID
        assert code(await client.ask(request(1, "tools/call", {"name": "x"}))) == INVALID
        assert (await client.ask(lone("1", "tools/list")))["id"] == "1"
        server.go.set()
        assert ((await client.receive())["id"], (await client.ask(request(1, "tools/list")))["id"]) == (1, 1)


async def test_requests_can_be_cancelled_before_and_after_a_handshake() -> None:
    server, old = works(STATELESS), works(LATEST)
    async with played(old, server) as (client, recording):
        await client.send(lone("a", "tools/call", name="wait"))
        await client.send(notification("notifications/cancelled", {"requestId": "a", "reason": "enough"}))
        await until(lambda: server.stopped == [STATELESS])
        await client.send(lone("b", "tools/call", name="wait"))
        await client.send(notification("notifications/cancelled", {"requestId": "b", "_meta": {VERSION: STATELESS}}))
        await until(lambda: server.stopped == [STATELESS] * 2)
        await client.introduce(LATEST)
        await client.send(request("a", "tools/call", {"name": "wait"}), lone("b", "tools/call", name="wait"))
        for id_ in ("a", "b", "never"):
            await client.send(notification("notifications/cancelled", {"requestId": id_}))
        await until(lambda: len(old.stopped) == 1 and len(server.stopped) == 3)
        assert (await client.ask(lone("a", "tools/list")))["id"] == "a"
        assert [message.get("id") for message in recording.sent] == [0, "a"]


async def test_stateless_requests_in_a_batch_are_refused() -> None:
    async with played(works("2025-03-26"), works(STATELESS)) as (client, _):
        await client.introduce("2025-03-26")
        answered = await client.ask([request(1, "tools/list"), lone(2, "tools/list"), lone(3, "initialize")])
        by_id = {part["id"]: part for part in answered}
        assert (by_id[1]["result"], code(by_id[2]), code(by_id[3])) == ({"tools": []}, INVALID, INVALID)
    for servers in ([works(LATEST), works(STATELESS)], [works(STATELESS)]):
        async with played(*servers) as (client, _):
            for batch in ([lone(1, "tools/list")], []):
                assert code(await client.ask(batch)) == INVALID


@each(
    ("data", "expected"),
    [(b"{", PARSE), (b"[]", INVALID), (b"1", INVALID), (b"{}", INVALID), (b'{"jsonrpc":"1.0","id":1}', INVALID)],
)
async def test_an_unreadable_message_gets_an_error_and_the_connection_stays_open(data: bytes, expected: int) -> None:
    async with played(works(STATELESS)) as (client, _):
        assert code(await client.ask(data)) == expected
        assert "result" in await client.ask(lone(1, "tools/list"))


async def test_unexpected_responses_are_ignored() -> None:
    async with played(works(STATELESS)) as (client, recording):
        await client.send(answer(1, {}), refusal(1, 1))
        await client.ask(lone(1, "tools/list"))
        assert len(recording.sent) == 1


# --- fast parser and general parser ---------------------------------------------------------------------------

run = settings(
    max_examples=examples(6, 40),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

IDS = st.sampled_from([0, 7, -1, 10**30, "7", "", "é"])
STATED = st.sampled_from([STATELESS, LATEST, "1999-01-01", "", 5, None, [STATELESS]])


def escaped(document: str) -> str:
    """Return the document with an equivalent JSON escape in the name of the version."""
    return re.sub(r"(?<!\\)/protocolVersion", r"\\/protocolVersion", document)


@cache
def messages(revision: str) -> st.SearchStrategy[Any]:
    """Return a strategy for all messages that a client of a revision may send."""
    instances = of_definitions(oracle(revision).definitions)
    return st.one_of(instances.strategy_of("ClientRequest"), instances.strategy_of("ClientNotification"))


def dual(kind: str) -> Connection:
    """Return a peer of a server: both eras or only the stateless era, before or after a handshake."""
    served = {"both": [LATEST, STATELESS], "ready": [LATEST, STATELESS], "batching": ["2025-03-26", STATELESS]}
    connection = Connection(
        "server", dispatchers_of(*(takes(one, "server", KINDS[one]) for one in served.get(kind, [STATELESS])))
    )
    if kind in ("ready", "batching"):
        asked = only(Requested, feed(connection, initialize(served[kind][0])))
        connection.negotiated()
        connection.respond(asked.id, {})
        feed(connection, INITIALIZED)
        assert connection.state is State.READY
    return connection


def said(events: list[Event]) -> list[object]:
    """Return events in a comparable form, with their revisions."""
    revisions = [
        event.dispatcher.revision.name if isinstance(event, Requested | Notified) else None for event in events
    ]
    return [*essence(events), *revisions]


@pytest.mark.parametrize("kind", ["both", "ready", "batching", "alone"])
@pytest.mark.parametrize("revision", [STATELESS, LATEST])
@run
@given(data=st.data())
def test_the_fast_parser_and_the_general_parser_agree(kind: str, revision: str, data: st.DataObject) -> None:
    message = data.draw(messages(revision))
    is_request = oracle(revision).methods[message["method"]].kind == "request"
    tidy = request(data.draw(IDS), message["method"]) if is_request else notification(message["method"])
    params = message.get("params")
    if params is not None:
        tidy["params"] = params
        meta = params.get("_meta")
        if data.draw(st.booleans()):
            params["_meta"] = {**(meta if isinstance(meta, dict) else {}), VERSION: data.draw(STATED)}
    connection, dice = dual(kind), random.Random(data.draw(st.integers(0, 2**32)))
    expected = said(feed(slow(connection), tidy))
    for written in (json.dumps(tidy), spelled(tidy, dice), escaped(spelled(tidy, dice))):
        assert said(feed(slow(connection), written.encode())) == expected
        assert said(feed(copied(connection), written.encode())) == expected


ODD = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"$V":"2026-07-28","$C":{},"$V":"2025-11-25"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"$V":"x"},"_meta":{"$V":"2026-07-28","$C":{}}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"$V":"2026-07-28"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"a":{"$V":"2026-07-28"}}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"\\u0069$W":"2026-07-28"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"x"}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"$V":"2026-07-28","$C":{}}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":{"$V":"2026-07-28"}}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"_meta":{"$V":"2026-07-28"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"$V":null}}}',
]


@each("kind", ["both", "ready", "batching", "alone"])
@each("odd", ODD)
def test_both_parsers_agree_on_unusual_json(kind: str, odd: str) -> None:
    connection = dual(kind)
    odd = odd.replace("$V", VERSION).replace("$W", VERSION[1:]).replace("$C", CLIENT_CAPABILITIES)
    assert said(feed(copied(connection), odd.encode())) == said(feed(slow(connection), odd.encode()))


def test_a_notification_is_read_in_its_stated_or_in_the_negotiated_revision() -> None:
    connection = dual("ready")
    for meta, revision in (({}, LATEST), ({VERSION: STATELESS}, STATELESS)):
        told = only(
            Notified, feed(connection, notification("notifications/cancelled", {"requestId": 9, "_meta": meta}))
        )
        assert told.dispatcher.revision.name == revision
        assert type(told.params) is bindings(revision).types.CancelledNotificationParams


def test_a_cancellation_is_accepted_before_any_handshake() -> None:
    connection = dual("both")
    only(Requested, feed(connection, lone(1, "tools/call", name="x")))
    only(CancelRequested, feed(connection, notification("notifications/cancelled", {"requestId": 1})))
    refused = only(
        Rejected, feed(connection, notification("notifications/progress", {"progressToken": 1, "progress": 1}))
    )
    assert refused.reply == b""


# --- discovery and common members of results ------------------------------------------------------------------


class Full(v2026_07_28.Server):
    """Server with every capability; handlers return shared objects."""

    info = mcp.Implementation(name="full", version="9", title="É")
    instructions = "Ask."
    tools = mcp.ListToolsResult(tools=[])
    own = mcp.ListPromptsResult(prompts=[], meta=mcp.ResultMetaObject.model_validate({"a/b": 1}))
    lasting = mcp.ListResourcesResult(resources=[], ttl_ms=5000, cache_scope="public")

    async def complete(self, params: mcp.CompleteRequestParams, ctx: v2026_07_28.Context) -> mcp.CompleteResult:
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=[]))

    def list_tools(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        return self.tools

    def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListPromptsResult:
        return self.own

    def list_resources(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListResourcesResult:
        return self.lasting

    def list_resource_templates(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> Any:
        return {"resourceTemplates": [], "ttlMs": 1, "cacheScope": "private", "x": None}

    def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: v2026_07_28.Context) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult(contents=[])

    def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: v2026_07_28.Context) -> mcp.GetPromptResult:
        named: Any = {SERVER_INFO: {"name": "somebody else", "version": "0"}}
        return mcp.GetPromptResult(messages=[], meta=mcp.ResultMetaObject.model_validate(named))

    def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
        return mcp.CallToolResult(content=[])


async def test_discovery_reports_the_capabilities_of_the_handlers() -> None:
    async with played(v2026_07_28.Server()) as (client, _):
        answered = (await client.ask(lone(1, "server/discover")))["result"]
        assert (answered["supportedVersions"], answered["capabilities"]) == ([STATELESS], {"logging": {}})
        assert answered["_meta"][SERVER_INFO] == {"name": "mcp-bindgen", "version": "0"}
        assert (answered["resultType"], answered["cacheScope"], answered["ttlMs"]) == ("complete", "private", 0)
        assert "instructions" not in answered
    async with played(Full(), works(LATEST)) as (client, _):
        answered = (await client.ask(lone(1, "server/discover")))["result"]
        assert (answered["supportedVersions"], answered["instructions"]) == ([STATELESS, LATEST], "Ask.")
        assert answered["capabilities"] == {
            "completions": {},
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
        }


async def test_every_result_has_server_info_and_a_result_type() -> None:
    bare = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"]
    completion = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}
    asked: dict[str, Any] = {**{name: {} for name in bare}, "prompts/get": {"name": "x"}, "tools/call": {"name": "x"}}
    asked |= {"resources/read": {"uri": "x:y"}, "completion/complete": completion}
    server = Full()
    kept = [server.tools.model_dump(), server.own.model_dump(), server.lasting.model_dump()]
    async with played(server) as (client, _):
        for method in [*asked, *asked]:
            result = (await client.ask(lone(1, method, **asked[method])))["result"]
            assert result["resultType"] == "complete"
            named = result["_meta"].pop(SERVER_INFO)
            assert named["name"] == ("somebody else" if method == "prompts/get" else "full")
            assert named.get("title") in ("É", None)
            assert result["_meta"] == ({"a/b": 1} if method == "prompts/list" else {})
            if method.endswith(("list", "read", "discover")):
                assert (result["ttlMs"], result["cacheScope"]) == {
                    "resources/list": (5000, "public"),
                    "resources/templates/list": (1, "private"),
                }.get(method, (0, "private"))
            else:
                assert "ttlMs" not in result
    assert kept == [server.tools.model_dump(), server.own.model_dump(), server.lasting.model_dump()]
    assert server.tools.meta is None


async def test_a_server_may_answer_discovery_itself() -> None:
    class Own(v2026_07_28.Server):
        def discover(self, params: mcp.RequestParams, ctx: v2026_07_28.Context) -> mcp.DiscoverResult:
            none = mcp.ServerCapabilities()
            return mcp.DiscoverResult(supported_versions=[STATELESS], capabilities=none, ttl_ms=60_000)

    async with played(Own()) as (client, _):
        answered = (await client.ask(lone(1, "server/discover")))["result"]
        assert (answered["ttlMs"], answered["capabilities"]) == (60_000, {})
        assert SERVER_INFO in answered["_meta"]


# --- custom methods of a server -------------------------------------------------------------------------------

ECHO: RequestMethod[Any, Any] = RequestMethod("acme/echo", "client", dict[str, Json], dict[str, Json])
HELLO: Notification[Any] = Notification("acme/hello", "client", dict[str, Json])


class Custom(v2026_07_28.Server):
    """Server with custom methods; their params are independent of the era."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    @handles(ECHO)
    async def echo(self, params: dict[str, Json], ctx: v2026_07_28.Context) -> dict[str, Any]:
        await ctx.progress(0.5)
        return {"said": params["say"], "by": ctx.peer_info.name, "can": sorted(ctx.peer_capabilities)}

    @handles(HELLO)
    async def hello(self, params: dict[str, Json], ctx: v2026_07_28.Context) -> None:
        self.heard.append(params)


async def test_custom_methods_work_in_the_stateless_revision() -> None:
    server = Custom()
    async with played(server) as (client, recording):
        message = lone(1, "acme/echo", {"roots": {}}, say="hi")
        message["params"]["_meta"]["progressToken"] = "t"
        await client.send(message)
        assert (await client.receive())["params"] == {"progressToken": "t", "progress": 0.5}
        result = (await client.receive())["result"]
        assert (result["said"], result["by"], result["can"]) == ("hi", "test", ["roots"])
        assert result["resultType"] == "complete"
        assert SERVER_INFO in result["_meta"]
        for missing in (VERSION, CLIENT_CAPABILITIES):
            message = lone(2, "acme/echo", say="hi")
            del message["params"]["_meta"][missing]
            assert code(await client.ask(message)) == PARAMS
        await client.send(notification("acme/hello", {"x": 1}))
        await until(lambda: server.heard == [{"x": 1}])
        assert len(recording.sent) == 4


# --- progress and logs ----------------------------------------------------------------------------------------


def call(meta: dict[str, Any]) -> dict[str, Any]:
    """Return a call with additional members in `_meta`."""
    return request(1, "tools/call", {"name": "x", "_meta": {**stating(), **meta}})


class Talks(v2026_07_28.Server):
    """Server that sends progress and log messages in every possible way."""

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
        await ctx.progress(0.1, 1, "begun")
        await ctx.log("debug", {"a": None}, "x")
        await ctx.log("error", "bad")
        await ctx.notify_logging_message("info", "info")
        await ctx.notify_logging_message("alert", "alarm")
        await ctx.progress(1.0)
        return mcp.CallToolResult(content=[])


LOGGED = {None: "", "debug": "debug error info alert", "info": "error info alert", "error": "error alert"}


@each("level", [*LOGGED, "emergency"])
async def test_log_messages_are_sent_only_for_requests_that_ask_for_them(level: str | None) -> None:
    expected = LOGGED.get(level, "").split()
    async with played(Talks()) as (client, recording):
        await client.send(call({} if level is None else {LOG_LEVEL: level}))
        await until(lambda: recording.sent and "result" in recording.sent[-1])
        assert [params["level"] for params in recording.params("notifications/message")] == expected
        assert recording.methods() == ["notifications/message"] * len(expected)
        await client.send(lone(2, "tools/call", name="x"))
        await until(lambda: recording.sent[-1].get("id") == 2)
        assert len(recording.methods()) == len(expected)


@each("token", [0, "t", "", 10**20])
async def test_progress_is_sent_only_for_requests_that_ask_for_it(token: object) -> None:
    async with played(Talks()) as (client, recording):
        await client.send(call({"progressToken": token}))
        await until(lambda: recording.sent and "result" in recording.sent[-1])
        told = recording.params("notifications/progress")
        assert [(one["progressToken"], one["progress"]) for one in told] == [(token, 0.1), (token, 1.0)]
        assert len(recording.sent) == 3


@each("level", ["verbose", "INFO", "", 5, [], True])
async def test_unknown_log_levels_are_invalid(level: object) -> None:
    async with played(Talks()) as (client, recording):
        assert (code(await client.ask(call({LOG_LEVEL: level}))), len(recording.sent)) == (PARAMS, 1)


async def test_an_unknown_log_level_in_a_handler_is_an_internal_error() -> None:
    class Invents(v2026_07_28.Server):
        async def call_tool(self, params: Any, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
            await ctx.log("loud", "x")  # type: ignore[arg-type]
            return mcp.CallToolResult(content=[])

    async with played(Invents()) as (client, recording):
        assert (code(await client.ask(call({LOG_LEVEL: "debug"}))), recording.methods()) == (INTERNAL, [])


# --- our client -----------------------------------------------------------------------------------------------


async def test_a_client_sends_its_info_and_capabilities_with_every_request() -> None:
    class Person(v2026_07_28.Client):
        info = mcp.Implementation(name="person", version="2")

        def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise AssertionError

    seen: list[float] = []
    async with connected(Person(), Talks(), works(LATEST)) as connection:
        client = connection.client
        assert client.server_info is not None
        assert client.server_capabilities["tools"] == {"listChanged": True}
        meta: dict[str, Json] = {LOG_LEVEL: "alert", "a/b": 1}
        await client.with_options(on_progress=lambda one: seen.append(one.progress)).call_tool("x", meta=meta)
        ids = [message["id"] for message in connection.ours.sent]
        assert len(set(ids)) == len(ids) == 2
        for message in connection.ours.sent:
            meta = message["params"]["_meta"]
            assert (meta[VERSION], meta[CLIENT_INFO]) == (STATELESS, {"name": "person", "version": "2"})
            assert meta[CLIENT_CAPABILITIES] == {"elicitation": {"form": {}, "url": {}}}
    assert seen == [0.1, 1.0]


async def test_clients_and_servers_without_a_common_revision_cannot_connect() -> None:
    strangers = [(client, works(LATEST)) for client in (v2026_07_28.Client(), v2024_11_05.Client())]
    for client, server in [(v2025_11_25.Client(), v2026_07_28.Server()), *strangers]:
        with pytest.raises((UnsupportedRevision, ConnectionClosed, ProtocolError)):
            async with connected(client, server, revisions=own(server), exactly=True):
                pass


def test_a_server_can_cancel_only_subscriptions() -> None:
    connection = Connection("client", dispatchers_of(takes(STATELESS, "client")))
    methods: Any = v2026_07_28.methods.METHODS
    params = {"_meta": stating(), "name": "x", "notifications": {}}
    for name, ends in (("subscriptions/listen", True), ("tools/call", False)):
        pending, _ = connection.request(methods[name], typed_params(methods[name], params))
        (event,) = feed(connection, notification("notifications/cancelled", {"requestId": pending.id}))
        assert isinstance(event, Answered) is ends
        assert (pending.id in connection.pending) is not ends


# --- over stdio -----------------------------------------------------------------------------------------------

SCRIPT = """
from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import run
class New(v2026_07_28.Server):
    async def call_tool(self, params, ctx):
        print("not for the client")
        return v2026_07_28.types.CallToolResult(content=[v2026_07_28.types.TextContent(text=ctx.revision)])
class Old(v2025_11_25.Server):
    async def call_tool(self, params, ctx):
        return v2025_11_25.types.CallToolResult(content=[v2025_11_25.types.TextContent(text=ctx.revision)])
run(Old(), New(), revisions=[Old.revision, New.revision])
"""


@pytest.mark.full
async def test_one_process_serves_stateful_and_stateless_revisions(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    said = [lone(1, "tools/call", name="x"), initialize(LATEST, id_=2), lone(3, "server/discover"), INITIALIZED]
    said += [request(4, "tools/call", {"name": "x"}), lone(5, "tools/call", name="x")]
    said.append(request(6, "tools/list", {"_meta": stating(revision="1999-01-01")}))
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in said)
    done = await anyio.run_process([sys.executable, str(script)], input=lines, stderr=None)
    answers = {message["id"]: message for message in map(json.loads, done.stdout.splitlines())}
    assert sorted(answers) == [1, 2, 3, 4, 5, 6]
    assert [text(answers[id_]) for id_ in (1, 4, 5)] == [STATELESS, LATEST, STATELESS]
    assert (answers[3]["result"]["supportedVersions"], code(answers[6])) == ([STATELESS, LATEST], UNSUPPORTED)
