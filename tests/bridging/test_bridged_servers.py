"""A server of one revision serves all revisions; each message is checked against the schema of the wire revision."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp
from mcp_bindgen.http.server.access import HttpEndpoint
from mcp_bindgen.runtime import (
    Context,
    ProtocolError,
    RequestMethod,
    Server,
    UnsupportedRevision,
    connect,
    handles,
    serve,
)
from mcp_bindgen.runtime.protocol.bridging import BRIDGING, MISSING
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness import checked_connections as checked
from tests.harness.commands import ROOT, execute
from tests.harness.effort import cases
from tests.harness.http_wires import listening
from tests.interop import ours
from tests.interop.full_server import server
from tests.interop.ours import text
from tests.interop.report import FEATURES, REVISIONS, STATEFUL, STATELESS, Report

NEWEST_STATEFUL = STATEFUL[-1]


def lacks(home: str, wire: str) -> set[str]:
    """Return the features that clients of revision `wire` do not find at a server of revision `home`."""
    if home == wire:
        return set()
    absent = {name for name, (first, last) in FEATURES.items() if not first <= home <= last}
    if wire < "2025-06-18":
        absent.add("content kinds")  # checked by the tests below
    if home < wire:  # the server class offers less than the wire revision
        absent |= {"content kinds", "completion", "progress"}
    if home == STATELESS:
        absent |= {"url elicitation"}  # no message reports that the user has opened the URL
    return absent


@pytest.mark.full
@pytest.mark.parametrize("wire", REVISIONS)
@pytest.mark.parametrize("home", [NEWEST_STATEFUL, STATELESS, REVISIONS[0]])
async def test_clients_of_every_revision_find_all_features_of_a_server(home: str, wire: str) -> None:
    report = Report(f"a server of {home}", wire, "stdio", without=frozenset({"shutdown", *lacks(home, wire)}))
    full, client = server(home), ours.client(wire, ours.ROOTS)
    async with full.lifespan(), checked.connected(client, full):
        await ours.converse(report, client)
    report.works.append("valid messages")
    report.check()


# --- conversion of messages -----------------------------------------------------------------------------------


def asking(wire: str, method: str, **params: Any) -> Any:
    """Return a request in the form of a revision."""
    return checked.lone(1, method, **params) if wire == STATELESS else checked.request(1, method, params)


class Old(v2025_11_25.Server):
    """Server with a handshake; a test sets the behaviour of its tool."""

    info = v2025_11_25.types.Implementation(name="old", version="1", title="Old")
    seen: Any = None

    async def list_tools(self, params: Any, ctx: Context) -> Any:
        schema = v2025_11_25.types.ToolInputSchema()
        return v2025_11_25.types.ListToolsResult(tools=[v2025_11_25.types.Tool(name="x", input_schema=schema)])

    async def call_tool(self, params: Any, ctx: v2025_11_25.Context) -> Any:
        self.seen = params, ctx
        return await self.work(params, ctx)

    async def work(self, params: Any, ctx: Any) -> Any:
        return said("done")


class New(v2026_07_28.Server):
    """Server without a handshake; a test sets the behaviour of its tool."""

    info = v2026_07_28.types.Implementation(name="new", version="1")
    seen: Any = None

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        self.seen = params, ctx
        return await self.work(params, ctx)

    async def work(self, params: Any, ctx: Any) -> Any:
        return v2026_07_28.types.CallToolResult(content=[])

    async def list_resources(self, params: Any, ctx: Context) -> Any:
        return v2026_07_28.types.ListResourcesResult(resources=[])


def said(*texts: str, **more: Any) -> Any:
    """Return a tool result of `Old`."""
    mcp = v2025_11_25.types
    return mcp.CallToolResult(content=[mcp.TextContent(text=text) for text in texts], **more)


def doing(kind: Any, work: Any) -> Any:
    """Return a server with this behaviour of its tool."""
    made = kind()
    made.work = work
    return made


@asynccontextmanager
async def by_hand(wire: str, *servers: Server) -> AsyncGenerator[tuple[Any, checked.Recording]]:
    """Yield a raw client of revision `wire`, and a recording that checks the server's messages against its schema."""
    async with checked.played(*servers, revisions=[wire]) as (raw, sent):
        if wire != STATELESS:
            await raw.introduce(wire)
        yield raw, sent


@pytest.mark.parametrize("wire", [one for one in REVISIONS if one != NEWEST_STATEFUL])
async def test_the_context_has_the_revision_of_the_server_and_of_the_wire(wire: str) -> None:
    server = Old()
    async with checked.connected(checked.bindings(wire).Client(), server) as connection:
        client: Any = connection.client
        await client.call_tool("x", {"a": None, "n": 2**60})
        params, ctx = server.seen
        assert isinstance(params, v2025_11_25.types.CallToolRequestParams)
        assert params.arguments == {"a": None, "n": 2**60}
        assert isinstance(ctx, v2025_11_25.Context)
        assert (ctx.revision, ctx.wire_revision) == (NEWEST_STATEFUL, wire)
        assert isinstance(ctx.peer_info, v2025_11_25.types.Implementation)
        assert client.server_info.name == "old"


@pytest.mark.parametrize("wire", STATEFUL)
async def test_a_stateless_handler_gets_client_info_and_log_level_in_meta(wire: str) -> None:
    server = New()
    async with by_hand(wire, server) as (raw, _):
        await raw.ask(checked.request(1, "tools/call", {"name": "x", "_meta": {"progressToken": 7, "a/b": 1}}))
        params, ctx = server.seen
        meta = params.meta
        assert isinstance(meta, v2026_07_28.types.RequestMetaObject)
        assert (meta.protocol_version, meta.progress_token) == (STATELESS, 7)
        assert meta.client_info is not None
        assert (meta.client_info.name, meta.client_capabilities.model_dump(), ctx.meta["a/b"]) == ("test", {}, 1)
        if "logging/setLevel" in checked.bindings(wire).methods.METHODS:
            await raw.ask(checked.request(2, "logging/setLevel", {"level": "error"}))
        await raw.ask(checked.request(3, "tools/call", {"name": "x"}))
        assert server.seen[0].meta.log_level == "error"


@pytest.mark.parametrize("wire", STATEFUL)
async def test_a_stateful_client_cannot_set_request_state_or_input_responses(wire: str) -> None:
    server = New()
    async with by_hand(wire, server) as (raw, _):
        answers = {"q": {"action": "accept", "content": {"ok": True}}}
        for state, said in (("asked", answers), ("asked", 5), (5, {"q": 5}), (None, None)):
            params = {"name": "x", "requestState": state, "inputResponses": said}
            answer = await raw.ask(checked.request(1, "tools/call", params))
            assert "result" in answer, answer
            assert (server.seen[0].request_state, server.seen[0].input_responses) == (None, None)


@pytest.mark.parametrize("wire", STATEFUL[:-1])
async def test_a_request_field_that_collides_with_a_later_revision_is_dropped(wire: str) -> None:
    server = Old()
    async with by_hand(wire, server) as (raw, _):
        answer = await raw.ask(checked.request(1, "tools/call", {"name": "x", "task": 5, "mine": 6}))
        assert answer["result"]["content"][0]["text"] == "done"
        params, _ = server.seen
        assert (params.task, params.mine) == (None, 6)
        error = (await raw.ask(checked.request(2, "tools/call", {"name": 5, "task": 5})))["error"]
        assert (error["code"], "params.name" in error["message"]) == (-32602, True)


@pytest.mark.parametrize("wire", REVISIONS[1:])
async def test_a_result_field_that_collides_with_a_later_revision_is_not_sent(wire: str) -> None:
    mcp = v2024_11_05.types

    class Odd(v2024_11_05.Server):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            own: Any = {"annotations": 5, "icons": "no", "mine": 6}
            return mcp.ListToolsResult(tools=[mcp.Tool(name="x", input_schema=mcp.ToolInputSchema(), **own)])

    async with by_hand(wire, Odd()) as (raw, _):
        (tool,) = (await raw.ask(asking(wire, "tools/list")))["result"]["tools"]
        assert (tool["mine"], "annotations" in tool, "icons" in tool) == (6, False, wire < "2025-11-25")


async def ask_by_hand(params: Any, ctx: Any) -> Any:
    """Send two input requests in results, with a state."""
    mcp = v2026_07_28.types
    answers, state = params.input_responses or {}, params.request_state
    if state == "twice":
        return mcp.CallToolResult(content=[mcp.TextContent(text=answers["again"].action)])
    assert state is None or answers["once"].content == {"a": "b"}
    schema = mcp.ElicitRequestFormParamsRequestedSchema(properties={"a": mcp.StringSchema(type="string")})
    question = mcp.ElicitRequest(params=mcp.ElicitRequestFormParams(message="?", requested_schema=schema))
    key, state = ("once", "once") if state is None else ("again", "twice")
    return mcp.InputRequiredResult(input_requests={key: question}, request_state=state)


@pytest.mark.parametrize("wire", [*STATEFUL[2:], STATELESS])
async def test_results_that_ask_for_input_become_requests(wire: str) -> None:
    package: Any = checked.bindings(wire)

    class Asked(package.Client):  # type: ignore[misc]
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            return package.types.ElicitResult(action="accept", content={"a": "b"})

    async with checked.connected(Asked(), doing(New, ask_by_hand)) as connection:
        assert (await connection.client.call_tool("x")).content[0].text == "accept"
        assert connection.theirs.methods().count("elicitation/create") == (0 if wire == STATELESS else 2)


@pytest.mark.parametrize("wire", STATEFUL)
async def test_the_error_for_a_request_for_input_names_the_missing_capability(wire: str) -> None:
    async with by_hand(wire, doing(New, ask_by_hand)) as (raw, _):
        answer = await raw.ask(checked.request(1, "tools/call", {"name": "x"}))
        assert "the capability 'elicitation'" in answer["error"]["message"]


async def test_url_elicitation_errors_become_requests_for_input() -> None:
    visited, asked = list[str](), 0

    async def pay(params: Any, ctx: Any) -> Any:
        nonlocal asked
        asked += 1
        if not visited:
            page = {"mode": "url", "elicitationId": "1", "url": "https://example.com/pay", "message": "Pay"}
            raise ProtocolError(-32042, "Pay first", {"elicitations": [page]})
        return said("paid")

    class Pays(v2026_07_28.Client):
        def extra_capabilities(self) -> dict[str, Any]:
            return {"elicitation": {"url": {}}}

        def on_elicit(self, params: Any, ctx: Any) -> Any:
            visited.append(params.url)
            return v2026_07_28.types.ElicitResult(action="accept")

    async with checked.connected(Pays(), doing(Old, pay)) as connection:
        assert text(await connection.client.call_tool("x")) == "paid"
    assert (visited, asked) == (["https://example.com/pay"], 2)

    async def never(params: Any, ctx: Any) -> Any:
        visited.clear()
        return await pay(params, ctx)

    async with checked.connected(Pays(), doing(Old, never)) as connection:
        assert (await checked.refused(connection.client.call_tool("x"), match="Pay first")).code == -32042
    async with checked.connected(checked.bindings(NEWEST_STATEFUL).Client(), doing(Old, never)) as connection:
        assert (await checked.refused(connection.client.call_tool("x"))).code == -32042


async def test_an_elicitation_that_cannot_be_converted_gives_an_error_result(caplog: pytest.LogCaptureFixture) -> None:
    mcp = v2025_11_25.types

    async def choose(params: Any, ctx: v2025_11_25.Context) -> Any:
        many = mcp.UntitledMultiSelectEnumSchema(items=mcp.UntitledMultiSelectEnumSchemaItems(enum=["a", "b"]))
        form = mcp.ElicitRequestFormParamsRequestedSchema(properties={"many": many})
        await ctx.elicit(mcp.ElicitRequestFormParams(message="?", requested_schema=form))
        raise AssertionError

    async with checked.played(doing(Old, choose), revisions=["2025-06-18"]) as (raw, _):
        await raw.introduce("2025-06-18", {"elicitation": {}})
        answer = await raw.ask(checked.request(1, "tools/call", {"name": "x"}))
        assert answer["result"]["isError"] is True
        assert "2025-06-18" in answer["result"]["content"][0]["text"]


async def test_a_loss_is_logged_once_for_each_connection(caplog: pytest.LogCaptureFixture) -> None:
    mcp = v2025_11_25.types

    async def sing(params: Any, ctx: Any) -> Any:
        return mcp.CallToolResult(content=[mcp.AudioContent(data="UklGRg==", mime_type="audio/wav")])

    server = doing(Old, sing)
    for _ in range(2):
        async with by_hand("2024-11-05", server) as (raw, _):
            for number in range(1, 3):
                answer = await raw.ask(checked.request(number, "tools/call", {"name": "x"}))
                assert answer["result"]["content"][0]["type"] == "resource"
    said = [record.getMessage() for record in caplog.records if "audio" in record.getMessage()]
    assert [line.startswith("to a client of 2024-11-05: ") for line in said] == [True, True]


@pytest.mark.parametrize("wire", REVISIONS)
async def test_a_wrong_result_type_is_an_internal_error_and_is_logged(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def wrong(params: Any, ctx: Any) -> Any:
        return "text"

    async with by_hand(wire, doing(Old, wrong)) as (raw, _):
        assert (await raw.ask(asking(wire, "tools/call", name="x")))["error"]["code"] == -32603
    assert "returned str, expected CallToolResult" in caplog.text


OWN: RequestMethod[dict[str, Any], dict[str, Any]] = RequestMethod("acme/own", "client", dict[str, Any], dict[str, Any])


class Extended(Old):
    """Server with a custom method."""

    @handles(OWN)
    async def own(self, params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"said": params, "revision": ctx.wire_revision}


@pytest.mark.parametrize("wire", REVISIONS)
async def test_custom_methods_pass_unchanged(wire: str) -> None:
    async with by_hand(wire, Extended()) as (raw, _):
        result = (await raw.ask(asking(wire, "acme/own", a=[1, None])))["result"]
        assert (result["said"]["a"], result["revision"]) == ([1, None], wire)


@pytest.mark.parametrize("wire", REVISIONS)
async def test_unknown_fields_and_meta_survive_conversion(wire: str) -> None:
    async def echo(params: Any, ctx: Any) -> Any:
        return said("x", meta={"a/b": ctx.meta.get("a/b")}, mine=params.model_extra.get("mine"))

    async with by_hand(wire, doing(Old, echo)) as (raw, _):
        asked = asking(wire, "tools/call", name="x", mine=[{"b": None}])
        asked["params"].setdefault("_meta", {})["a/b"] = {"c": 1.0}
        result = (await raw.ask(asked))["result"]
        assert (result["mine"], result["_meta"]["a/b"]) == ([{"b": None}], {"c": 1.0})


# --- subscriptions across the eras ----------------------------------------------------------------------------


class Followed(Old):
    """Server that records subscriptions; it refuses the resource `x:bad`."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    async def list_resources(self, params: Any, ctx: Context) -> Any:
        return v2025_11_25.types.ListResourcesResult(resources=[])

    async def subscribe(self, params: Any, ctx: Context) -> Any:
        if params.uri == "x:bad":
            raise ProtocolError(-32002, "Resource not found")
        self.log.append(("subscribe", params.uri))
        return v2025_11_25.types.EmptyResult()

    async def unsubscribe(self, params: Any, ctx: Context) -> Any:
        self.log.append(("unsubscribe", params.uri))
        return v2025_11_25.types.EmptyResult()


async def test_a_listening_client_is_subscribed_and_unsubscribed() -> None:
    mcp, server = v2026_07_28.types, Followed()
    async with checked.connected(v2026_07_28.Client(), server) as connection:
        wanted = mcp.SubscriptionFilter(resource_subscriptions=["x:a", "x:bad", "x:a"])
        async with connection.client.subscribed(wanted) as agreed:
            assert (agreed.resource_subscriptions, server.log) == (["x:a"], [("subscribe", "x:a")])
            (client,) = server.connections
            assert client.wire_revision == STATELESS
            await server.broadcast(lambda each: each.notify_resource_updated("x:a"))
            await checked.until(lambda: connection.theirs.methods().count("notifications/resources/updated") == 1)
        await checked.until(lambda: server.log[1:] == [("unsubscribe", "x:a")])


async def test_a_subscription_that_is_cancelled_halfway_leaves_no_resource_subscribed() -> None:
    class Slow(Followed):
        async def subscribe(self, params: Any, ctx: Context) -> Any:
            await super().subscribe(params, ctx)
            await anyio.sleep_forever()

    server = Slow()
    wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=["x:a"])
    async with checked.connected(v2026_07_28.Client(), server) as connection:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.client.subscribed(wanted).__aenter__)
                await checked.until(lambda: bool(server.log))
                scope.cancel()
        await checked.until(lambda: server.log == [("subscribe", "x:a"), ("unsubscribe", "x:a")])


async def test_subscribed_stateful_clients_get_updates_of_a_stateless_server() -> None:
    server = New()
    async with by_hand("2025-06-18", server) as (raw, sent):
        assert (await raw.ask(checked.request(1, "resources/subscribe", {"uri": "x:a"})))["result"] == {}
        for uri in ("x:b", "x:a"):
            await server.broadcast(lambda each, uri=uri: each.notify_resource_updated(uri))  # type: ignore[misc]
        assert (await raw.receive())["params"] == {"uri": "x:a"}
        await raw.ask(checked.request(2, "resources/unsubscribe", {"uri": "x:a"}))
        await server.broadcast(lambda each: each.notify_resource_updated("x:a"))
        await raw.ask(checked.request(3, "ping"))
        assert sent.methods() == ["notifications/resources/updated"]


async def test_a_stateless_server_answers_stateful_clients_without_sessions() -> None:
    server = New()
    app = HttpApp(server, sessions=False, allowed_hosts=["test"])
    transport = httpx2.ASGITransport(app)
    async with app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://test") as http:
        for wire in STATEFUL[1:]:
            headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": wire}
            answer = await http.post("/mcp", json=checked.request(1, "tools/call", {"name": "x"}), headers=headers)
            assert answer.json()["result"]["content"] == []
            assert server.seen[0].meta.client_info is None


class Scoped(Old):
    """Server that requires a scope for one of its tools."""

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        return ["special"] if name == "x" else []


class AccessPolicy:
    """Access policy that requires no scopes."""

    metadata_path = None

    def needed(self, operation: Any) -> frozenset[str]:
        return frozenset()


def test_scopes_are_needed_in_every_revision() -> None:
    access_policy: Any = AccessPolicy()
    service = HttpEndpoint([Scoped()], access_policy=access_policy)
    for revision in REVISIONS:
        assert service.needed_scopes(revision, [("tools/call", "x")]) == {"special"}
        assert service.needed_scopes(revision, [("tools/call", "y")]) == frozenset()


def test_subscribing_requires_the_scopes_of_listening() -> None:
    class Listened(New):
        def required_scopes(self, method: str, name: str | None) -> Collection[str]:
            return ["ears"] if method == "subscriptions/listen" else []

    class Listening(AccessPolicy):
        def needed(self, operation: Any) -> frozenset[str]:
            return frozenset({"access_policy"} if operation[0] == "subscriptions/listen" else ())

    access_policy: Any = Listening()
    service = HttpEndpoint([Listened()], access_policy=access_policy)
    for revision in STATEFUL:
        assert service.needed_scopes(revision, [("resources/subscribe", "file:///x")]) == {"ears", "access_policy"}
        assert service.needed_scopes(revision, [("resources/read", "file:///x")]) == frozenset()


# --- served revisions -----------------------------------------------------------------------------------------


async def test_the_server_with_the_nearest_revision_serves_a_client() -> None:
    ours = {revision: server(revision) for revision in ("2024-11-05", NEWEST_STATEFUL)}
    for wire, home in dict(zip(REVISIONS, ["2024-11-05", "2024-11-05", *[NEWEST_STATEFUL] * 3], strict=True)).items():
        async with checked.connected(checked.bindings(wire).Client(), *ours.values()) as connection:
            await connection.client.list_tools()
            if wire != STATELESS:
                assert [one.wire_revision for one in ours[home].connections] == [wire]
                assert not [one for other in ours if other != home for one in ours[other].connections]


@pytest.mark.parametrize(
    ("wanted", "words"), [(["2024-11-05", "1999-01-01"], "1999-01-01 cannot be served"), ([], "none cannot be served")]
)
def test_revisions_that_cannot_be_served_are_refused_by_name(wanted: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Endpoint([Old()], revisions=wanted)
    assert str(caught.value).endswith(", ".join(REVISIONS))


async def test_only_configured_revisions_are_served() -> None:
    async with checked.played(Old(), revisions=["2025-03-26"]) as (raw, _):
        assert (await raw.ask(checked.initialize("2025-11-25")))["result"]["protocolVersion"] == "2025-03-26"


def test_features_missing_for_other_revisions_are_logged_at_startup(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="mcp_bindgen"):
        Endpoint([Old()])
    lines = [record.getMessage() for record in caplog.records]
    foreign = [f"clients of {one}" for one in REVISIONS if one != NEWEST_STATEFUL]
    assert [line.partition(" miss of Old: ")[0] for line in lines] == foreign
    assert "tools/call: MCP 2024-11-05 has no audio" in lines[0]


@pytest.mark.full
def test_a_revision_is_imported_when_a_client_uses_it(tmp_path: Path) -> None:
    code = """
import json, sys
from written_once import main, Notes
from mcp_bindgen.runtime import Transport
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.http import HttpApp
service = Endpoint([Notes()])
assert len(service.dispatchers.supported) == 5
peer = service.session(type("T", (Transport,), {})()).connection
def loaded():
    return sorted(n for n in sys.modules if n.startswith("mcp_bindgen.") and n.endswith((".types", "_to_v2025_11_25")))
before = loaded()
params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
peer.read(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode())
print(json.dumps([before, loaded()]))
"""
    done = execute(sys.executable, "-c", code, cwd=ROOT / "examples")
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before == ["mcp_bindgen.v2025_11_25.types"]
    loaded = [f"mcp_bindgen.{revision}.types" for revision in ("v2024_11_05", "v2025_11_25")]
    assert [name for name in after if name.endswith(".types")] == loaded


@pytest.mark.parametrize("wire", STATEFUL)
async def test_invalid_request_metadata_of_stateful_clients_causes_no_failure(wire: str) -> None:
    server = New()
    async with by_hand(wire, server) as (raw, _):
        for meta in (None, 5, {}, {"progressToken": [1], "a/b": 1}):
            answer = await raw.ask(checked.request(1, "tools/call", {"name": "x", "_meta": meta}))
            if "error" in answer:  # the revision defines a type for this member
                assert (answer["error"]["code"], wire > STATEFUL[0]) == (-32602, True)
            elif isinstance(meta, dict) and "a/b" in meta:
                assert server.seen[1].meta["a/b"] == 1
                assert server.seen[0].meta.progress_token is None


async def test_a_notification_from_a_handler_reaches_no_other_principal() -> None:
    async def tell(params: Any, ctx: Any) -> Any:
        await ctx.notify_tool_list_changed()
        return said()

    class Listens(v2026_07_28.Client):
        def __init__(self) -> None:
            super().__init__()
            self.heard = anyio.Event()

        def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            self.heard.set()

    app = HttpApp(doing(Old, tell), principal=lambda scope: dict(scope["headers"])[b"x-who"].decode())
    ada, eve = Listens(), Listens()
    wanted = v2026_07_28.types.SubscriptionFilter(tools_list_changed=True)
    async with listening(app) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        here, there = (connect(url, client, headers={"x-who": who}) for client, who in ((ada, "ada"), (eve, "eve")))
        async with here, there, ada.subscribed(wanted), eve.subscribed(wanted):
            await ada.call_tool("any")
            with anyio.fail_after(30):
                await ada.heard.wait()
            with anyio.move_on_after(0.1):
                await eve.heard.wait()
    assert not eve.heard.is_set()


LOADED = """
import json, sys
from mcp_bindgen.{package} import Server
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.protocol.transport import Transport
peer = Endpoint([Server()]).session(type("T", (Transport,), {{}})()).connection
def loaded():
    return any(name.startswith("mcp_bindgen.bridging") for name in sys.modules)
found = []
for message in {messages}:
    peer.read(json.dumps(message).encode())
    found.append([loaded(), peer.dispatcher.revision.name])
print(json.dumps(found))
"""
META = "io.modelcontextprotocol/protocolVersion"


def list_tools(**meta: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta} if meta else {}}


CONVERSATIONS: list[Any] = [
    ("v2025_11_25", [checked.initialize("2025-11-25"), list_tools()], [[False, "2025-11-25"]] * 2),
    ("v2025_11_25", [checked.initialize("2024-11-05")], [[True, "2024-11-05"]]),
    ("v2025_11_25", [checked.initialize("1999-01-01")], [[True, "2025-11-25"]]),
    (
        "v2025_11_25",
        [checked.initialize("2025-11-25"), list_tools(**{META: "2026-07-28"})],
        [[False, "2025-11-25"], [True, "2025-11-25"]],
    ),
    ("v2026_07_28", [list_tools(**{META: "2026-07-28"})], [[False, "2025-11-25"]]),
    ("v2026_07_28", [checked.initialize("2025-11-25")], [[True, "2025-11-25"]]),
]
"""Package of bindings; messages; after each message, True if conversions are loaded, and the revision, if unnamed."""


@pytest.mark.full
@pytest.mark.parametrize(("package", "messages", "expected"), cases(CONVERSATIONS, quick=CONVERSATIONS[:2]))
def test_conversion_is_loaded_for_foreign_revisions_only(
    package: str, messages: list[Any], expected: list[list[Any]]
) -> None:
    done = execute(sys.executable, "-c", LOADED.format(package=package, messages=messages))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the conversion between revisions, as if it were not installed."""
    monkeypatch.setattr(BRIDGING, "objects", ())


@pytest.mark.usefixtures("without")
def test_a_server_without_conversion_serves_only_its_own_revision() -> None:
    assert Endpoint([v2025_11_25.Server()]).dispatchers.supported == ["2025-11-25"]
    with pytest.raises(ValueError, match=f"1999-01-01 cannot be served; {MISSING}; there are 2025-11-25"):
        Endpoint([v2025_11_25.Server()], revisions=["1999-01-01", "2025-11-25"])


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("package", [v2024_11_05, v2026_07_28])
async def test_a_client_without_conversion_refuses_servers_of_other_revisions(package: Any) -> None:
    left, right = pair()
    async with checked.running(serve(right, v2025_11_25.Server())):
        with pytest.raises(UnsupportedRevision, match=rf"{package.Client.revision} \({MISSING}\)"):
            async with package.Client().connected(left):
                pass
