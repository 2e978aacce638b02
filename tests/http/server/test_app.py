"""HTTP endpoint: clients of both eras and all other callers at one address."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp, HttpLimits
from mcp_bindgen.runtime import Json, Notification, ProtocolError, RequestMethod, handles
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import (
    INITIALIZED,
    STATELESS,
    initialize,
    lone,
    notification,
    oracle,
    own,
    request,
    stating,
    until,
)
from tests.harness.effort import each
from tests.harness.exchanges import Exchange
from tests.harness.http_wires import BOTH, LATEST
from tests.harness.meta_keys import CLIENT_CAPABILITIES, SERVER_INFO, SUBSCRIPTION, VERSION

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
MISMATCH, LACKING, UNSUPPORTED = -32020, -32021, -32022
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS = "notifications/tools/list_changed"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Headers = list[tuple[str, str]]


# --- one HTTP request over ASGI -------------------------------------------------------------------------------


class Visit(Exchange):
    """HTTP request whose response is checked against the schema, as the answer to `asked` if that is a request."""

    asked: Any = None

    @property
    def messages(self) -> list[Any]:
        assert all(block["event"] == "message" for block in self.blocks)
        found = super().messages
        for message in found:
            wrong = oracle(STATELESS).message(message)
            if "result" in message and self.asked is not None:
                wrong += oracle(STATELESS).result(self.asked["method"], message["result"])
                assert message["id"] == self.asked["id"]
            assert not wrong, wrong
        return found

    @property
    def answer(self) -> Any:
        """Return the last message, which is the answer."""
        assert self.over
        return self.messages[-1]

    @property
    def code(self) -> int:
        """Return the code of the error response."""
        found: int = self.answer["error"]["code"]
        return found

    @property
    def text(self) -> Any:
        """Return the text of a tool result."""
        return self.answer["result"]["content"][0]["text"]


def mirrored(message: Any) -> dict[str, str]:
    """Return the headers that a stateless client sends with a message."""
    found = {"host": "localhost", "content-type": "application/json", "accept": BOTH}
    if isinstance(message, dict):
        params = message.get("params") or {}
        stated = params.get("_meta", {}).get(VERSION) if isinstance(params.get("_meta", {}), dict) else None
        found |= {"mcp-protocol-version": str(stated)} if stated is not None else {}
        if isinstance(message.get("method"), str):
            found["mcp-method"] = message["method"]
            if message["method"] in NAMED and NAMED[message["method"]] in params:
                found["mcp-name"] = params[NAMED[message["method"]]]
    return found


def begin(app: Any, message: Any, headers: dict[str, str | None] | Headers | None = None, **more: Any) -> Visit:
    """Begin to POST a message (JSON, or raw bytes) with the headers of a stateless client.

    Args:
        app: The application.
        message: The message.
        headers: Headers that differ; `None` removes a header, and a list adds headers.
        more: More of the ASGI scope: `path`, or `parts` of the body.
    """
    sent = list(mirrored(message).items())
    if isinstance(headers, dict):
        sent = [(name, value) for name, value in sent if name not in headers]
        sent += [(name, value) for name, value in headers.items() if value is not None]
    else:
        sent += headers or []
    body = message if isinstance(message, bytes) else _data(message)
    visit = Visit(app, more.pop("method", "POST"), sent, more.pop("parts", [body]), **more)
    visit.asked = message if isinstance(message, dict) and "id" in message else None
    return visit


def _data(message: Any) -> bytes:
    return json.dumps(message).encode()


async def post(app: Any, message: Any, headers: Any = None, **more: Any) -> Visit:
    """POST a message and wait for the whole response."""
    return await begin(app, message, headers, **more).end()


# --- servers --------------------------------------------------------------------------------------------------

HELLO: Notification[Any] = Notification("acme/hello", "client", dict[str, Json])
ECHO: RequestMethod[Any, Any] = RequestMethod("acme/echo", "client", dict[str, Json], dict[str, Json])
REGION = {"type": "string", "x-mcp-header": "Region"}


class Now(v2026_07_28.Server):
    """Stateless server with tools for all tests of an endpoint."""

    info = mcp.Implementation(name="now", version="1")

    def __init__(self) -> None:
        self.heard, self.events, self.go = list[Any](), list[str](), asyncio.Event()
        self.tools = [mcp.Tool(name="plain", input_schema=mcp.ToolInputSchema()), self.regional("regional")]
        self.listed = 0

    @staticmethod
    def regional(name: str) -> mcp.Tool:
        """Return a tool whose arguments are mirrored in headers."""
        properties: Any = {"region": REGION, "size": {"type": "integer", "x-mcp-header": "Size"}}
        properties["deep"] = {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}}
        return mcp.Tool(
            name=name, input_schema=mcp.ToolInputSchema.model_validate({"type": "object", "properties": properties})
        )

    async def list_tools(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        self.listed += 1
        await ctx.log("error", "listing")
        await ctx.progress(1)
        return mcp.ListToolsResult(tools=self.tools)

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> Any:
        arguments: Any = params.arguments or {}
        match params.name:
            case "wait":
                self.events.append("begun")
                try:
                    await self.go.wait()
                except BaseException:
                    self.events.append("cancelled")
                    raise
                finally:
                    self.events.append("freed")
            case "talk":
                for number in range(arguments.get("times", 3)):
                    await ctx.progress(number, 3)
                    await ctx.log("info", {"n": number, "text": "a\nb\r\nc\u2028d"})
                    await anyio.sleep(0)
            case "talk and fail":
                await ctx.progress(1)
                raise ProtocolError(-7, "seven")
            case "talk and break":
                await ctx.progress(1)
                raise ValueError("x")
            case "talk and wait":
                await ctx.progress(1)
                await self.go.wait()
            case "break":
                raise ValueError("x")
            case "cancelled":
                work = asyncio.create_task(asyncio.sleep(5))
                work.cancel()
                await work
            case "ask":
                await ctx.ask_params("who", mcp.ElicitRequestURLParams(message="", url="https://example.org"))
                return mcp.InputRequiredResult(request_state="more")
            case "who":
                return mcp.CallToolResult(content=[mcp.TextContent(text=str(ctx.origin.principal))])
            case "change":
                await self.broadcast(lambda client: client.notify_tool_list_changed())
            case _:
                pass
        return mcp.CallToolResult(content=[mcp.TextContent(text=params.name)])

    async def read_resource(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text="x")])

    @handles(HELLO)
    async def hello(self, params: dict[str, Json], ctx: v2026_07_28.Context) -> None:
        self.heard.append((params, ctx.revision))
        if params.get("fail"):
            raise ValueError("x")

    @handles(ECHO)
    async def echo(self, params: dict[str, Json], ctx: v2026_07_28.Context) -> dict[str, Json]:
        return {"said": params["say"]}


class Then(v2025_11_25.Server):
    """Stateful server."""

    async def call_tool(self, params: Any, ctx: v2025_11_25.Context) -> v2025_11_25.types.CallToolResult:
        text = f"{ctx.revision} {params.name}"
        return v2025_11_25.types.CallToolResult(content=[v2025_11_25.types.TextContent(text=text)])


@asynccontextmanager
async def serving(*servers: Any, **options: Any) -> AsyncGenerator[HttpApp]:
    """Run an endpoint that serves the revisions of its servers only."""
    servers = servers or (Then(), Now())
    settings: Any = {"revisions": own(*servers), **options}
    app = HttpApp(*servers, **settings)
    async with app.lifespan():
        yield app


def tool(name: str, id_: object = 1, *, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """Return a tool call."""
    message = lone(id_, "tools/call", name=name, **({"arguments": arguments} if arguments else {}))
    message["params"]["_meta"] |= meta or {}
    return message


TALKS = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}


# --- plain responses ------------------------------------------------------------------------------------------


async def test_a_request_that_finishes_at_once_is_answered_with_json() -> None:
    async with serving() as app:
        for message in (tool("plain", "é"), lone(0, "server/discover"), lone(-1, "tools/list")):
            done = await post(app, message)
            assert (done.status, done.kind, done.answer["id"]) == (200, "application/json", message["id"])
            assert done.answer["result"]["_meta"][SERVER_INFO]["name"] == "now"
            assert int(done.headers["content-length"]) == len(done.body)
            assert "mcp-session-id" not in done.headers


async def test_a_request_with_notifications_is_answered_with_events() -> None:
    async with serving() as app:
        done = await post(app, tool("talk", meta=TALKS))
        assert (done.status, done.kind, done.headers["x-accel-buffering"]) == (200, "text/event-stream", "no")
        assert "no-cache" in done.headers["cache-control"]
        assert [message.get("method") for message in done.messages] == [
            *["notifications/progress", "notifications/message"] * 3,
            None,
        ]
        assert done.messages[1]["params"]["data"]["text"] == "a\nb\r\nc\u2028d"
        assert (await post(app, tool("talk"))).kind == "application/json"


async def test_a_slow_request_without_notifications_is_answered_with_json() -> None:
    server = Now()
    async with serving(server) as app:
        visit = begin(app, tool("wait"))
        await until(lambda: server.events)
        assert not visit.status
        server.go.set()
        assert ((await visit.end()).kind, server.events) == ("application/json", ["begun", "freed"])


async def test_errors_are_reported_before_and_after_the_stream_began() -> None:
    async with serving() as app:
        for name, code in (("talk and fail", -7), ("talk and break", INTERNAL)):
            done = await post(app, tool(name, meta=TALKS))
            assert (done.status, done.kind, done.code) == (200, "text/event-stream", code)
            assert len(done.messages) == 2
            done = await post(app, tool(name))
            assert (done.status, done.kind, done.code) == (200, "application/json", code)
        for name in ("break", "cancelled"):
            done = await post(app, tool(name))
            assert (done.status, done.code) == (200, INTERNAL)
            assert b"ValueError" not in done.body


async def test_a_request_for_input_requires_a_capability_and_a_valid_request_state() -> None:
    async with serving() as app:
        done = await post(app, tool("ask"))
        assert (done.status, done.code) == (400, LACKING)
        assert done.answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}
        message = tool("ask", meta={CLIENT_CAPABILITIES: {"elicitation": {"url": {}}}})
        done = await post(app, message)
        assert (done.status, done.answer["result"]["resultType"]) == (200, "input_required")
        message["params"]["inputResponses"] = {"who": {"action": "accept"}}
        state = (await post(app, message)).answer["result"]["requestState"]
        for changed, status in ((state, 200), (state + "-TAMPERED", 200)):
            message["params"]["requestState"] = changed
            done = await post(app, message)
            assert done.status == status
            assert ("error" in done.answer) is (changed != state)


async def test_a_request_state_is_valid_only_for_its_user() -> None:
    async with serving(Now(), principal=lambda scope: scope.get("who")) as app:
        message = tool("ask", meta={CLIENT_CAPABILITIES: {"elicitation": {"url": {}}}})
        message["params"]["inputResponses"] = {"who": {"action": "accept"}}
        message["params"]["requestState"] = (await post(app, message, who="ada")).answer["result"]["requestState"]
        assert "result" in (await post(app, message, who="ada")).answer
        for other in ("eve", None, ""):
            assert (await post(app, message, who=other)).code == PARAMS


@each(
    ("user", "expected"),
    [
        (SimpleUser("ada"), "ada"),
        (None, "None"),
        (type("Known", (SimpleUser,), {"identity": "id-1"})("ada"), "id-1"),
        (type("Nobody", (SimpleUser,), {"is_authenticated": False})("ada"), "None"),
    ],
)
async def test_the_principal_comes_from_the_authentication_middleware(user: Any, expected: str) -> None:
    async with serving(Now()) as app:
        more = {} if user is None else {"user": user, "auth": AuthCredentials(["authenticated"])}
        assert (await post(app, tool("who"), **more)).text == expected


async def test_custom_methods_are_served() -> None:
    server = Now()
    async with serving(Then(), server) as app:
        done = await post(app, lone(1, "acme/echo", say="hi"))
        assert done.answer["result"]["said"] == "hi"
        for params in ({"x": 1}, {"fail": True}):
            done = await post(app, notification("acme/hello", {**params, "_meta": {VERSION: STATELESS}}))
            assert (done.status, done.body) == (202, b"")
        assert [said.get("x") for said, _ in server.heard] == [1, None]
        assert {revision for _, revision in server.heard} == {STATELESS}


# --- statuses and errors --------------------------------------------------------------------------------------

every_app = each("servers", [(Now,), (Then, Now)])


@every_app
@each("missing", [VERSION, CLIENT_CAPABILITIES, "_meta", "params"])
async def test_requests_without_required_metadata_are_refused(servers: Any, missing: str) -> None:
    async with serving(*[kind() for kind in servers]) as app:
        for method in ("tools/list", "tools/call", "server/discover", "subscriptions/listen"):
            message = lone(3, method, name="plain", notifications={})
            headers = mirrored(message)
            message["params"]["_meta"].pop(missing, None)
            message["params"].pop(missing, None)
            message.pop(missing, None)
            done = await post(app, message, headers)
            assert (done.status, done.code, done.answer["id"]) == (400, PARAMS, 3)


@every_app
@each("stated", ["1999-01-01", "2099-01-01", "", "2025-06-18", "x" * 1000])
async def test_an_unsupported_revision_gets_the_list_of_supported_revisions(servers: Any, stated: str) -> None:
    async with serving(*[kind() for kind in servers]) as app:
        offered = (await post(app, lone(0, "server/discover"))).answer["result"]["supportedVersions"]
        for method in ("tools/list", "initialize", "no/such"):
            done = await post(app, request(1, method, {"_meta": stating(revision=stated)}))
            assert (done.status, done.code, done.answer["id"]) == (400, UNSUPPORTED, 1)
            assert done.answer["error"]["data"] == {"supported": offered, "requested": stated}


async def test_a_stateful_client_gets_the_revisions_of_a_stateless_server() -> None:
    async with serving(Now()) as app:
        done = await post(app, initialize(LATEST), {"mcp-method": None})
        assert (done.status, done.answer["id"], done.answer["error"]["data"]) == (400, 0, {"supported": [STATELESS]})
        done = await post(app, initialize(LATEST), {"mcp-protocol-version": STATELESS})
        assert (done.status, done.code, done.answer["error"]["data"]) == (404, UNKNOWN, {"supported": [STATELESS]})


NO_TEXTS: list[Any] = [5, [], {}, True]
REFUSED: list[tuple[Any, dict[str, str], int, int]] = [
    *((lone("x", name), {}, 404, UNKNOWN) for name in ("initialize", "ping", "logging/setLevel", "no/such", "")),
    *((lone("x", f"resources/{name}"), {}, 404, UNKNOWN) for name in ("subscribe", "unsubscribe")),
    (lone("x", "é"), {"mcp-method": "x"}, 404, UNKNOWN),
    *((request("x", "tools/list", {"_meta": stating(revision=stated)}), {}, 400, PARAMS) for stated in NO_TEXTS),
    *((body, {}, 400, PARSE) for body in (b"", b"{", b"\xff\xfe", b"[" * 5000)),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":NaN}}', {}, 400, PARSE),
    *((body, {}, 400, INVALID) for body in (b"[]", b"1", b"{}", b"null", [lone(1, "tools/list")])),
    *((b'{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % id_, {}, 400, INVALID) for id_ in (b"null", b"{}")),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}, 400, INVALID),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', {}, 400, INVALID),
    (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', {}, 400, INVALID),
    (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', {}, 400, INVALID),
]


@every_app
@each(("message", "headers", "status", "code"), REFUSED)
async def test_invalid_messages_are_refused(servers: Any, message: Any, headers: Any, status: int, code: int) -> None:
    async with serving(*[kind() for kind in servers]) as app:
        stated = {} if isinstance(message, dict) and message["method"] != "tools/list" else {"mcp-method": "tools/list"}
        done = await post(app, message, {"mcp-protocol-version": STATELESS, **stated, **headers})
        assert (done.status, done.code) == (status, code)
        assert not isinstance(message, dict) or done.answer["id"] == "x"


@every_app
async def test_half_of_a_surrogate_pair_is_refused_under_the_id_of_its_request(servers: Any) -> None:
    async with serving(*[kind() for kind in servers]) as app:
        done = await post(app, tool("echo", "x", text="half \ud83d"))
        assert (done.code, done.answer["id"]) == (PARAMS, "x")


async def test_notifications_are_accepted_with_202_or_refused_without_an_id() -> None:
    async with serving(Now()) as app:
        done = await post(app, notification("notifications/cancelled", {"requestId": 1}))
        assert (done.status, done.body) == (202, b"")
        for said in (notification("no/such"), notification("notifications/cancelled", {})):
            done = await post(app, said)
            assert 400 <= done.status < 500
            assert "id" not in done.answer


@every_app
@each("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "get"])
async def test_unsupported_http_methods_get_405(servers: Any, method: str) -> None:
    async with serving(*[kind() for kind in servers]) as app:
        done = await post(app, tool("plain"), method=method)
        assert (done.status, done.headers["allow"]) == (405, "POST" if servers == (Now,) else "POST, GET, DELETE")


async def test_a_stateless_endpoint_refuses_get_and_delete_and_ignores_session_ids() -> None:
    async with serving(Now()) as app:
        for method in ("GET", "DELETE"):
            done = await post(app, b"", {"accept": "text/event-stream", "mcp-session-id": "x"}, method=method)
            assert (done.status, done.headers["allow"]) == (405, "POST")
        done = await post(app, tool("plain"), {"mcp-session-id": "x", "last-event-id": "1"})
        assert done.status == 200
        assert "mcp-session-id" not in done.headers


@each("path", ["/", "/mcp/", "/MCP", "/mcp/x", "//mcp", "/mcp2", "", "/sse"])
async def test_other_paths_are_not_found(path: str) -> None:
    async with serving() as app:
        done = await post(app, tool("plain"), path=path)
        assert done.status == 404
        assert b"nothing is served here; this server answers at /mcp" in done.body


JSON = ("application/json", "APPLICATION/JSON; charset=utf-8", "application/json;x=y")
KINDS = (None, "text/plain", "application/jsonp", "application/x-www-form-urlencoded", "")
WORDS = {200: b"plain", 421: b"this host is not served here", 403: b"this origin is not allowed"}
SENT: list[tuple[Any, int]] = [
    *(({"content-type": kind}, 415) for kind in KINDS),
    *(({"content-type": kind}, 200) for kind in JSON),
    *(([("content-type", kind), ("content-type", "text/plain")], 415) for kind in JSON),
    *(({"host": host}, 421) for host in ("evil.example.com", None, "")),
    ([("host", "evil.example.com")], 421),
    ({"host": "localhost:8000", "origin": "http://localhost:3000"}, 200),
    ({"origin": "https://evil.example.com"}, 403),
    ([("origin", "http://localhost"), ("origin", "http://evil.example.com")], 403),
    ([("x", "y" * 70_000)], 431),
    ([(f"x-{place}", "y") for place in range(100)], 200),
    *(({"mcp-name": name}, 200) for name in ("plain", "=?base64?cGxhaW4=?=", " \tplain\t ")),
    *(({"accept": kind}, 200) for kind in (None, "application/json")),
    ({"mcp-method": " tools/call ", "mcp-protocol-version": f" {STATELESS}\t"}, 200),
    ({"mcp-session-id": "anything"}, 200),
]


@every_app
@each(("headers", "status"), SENT)
async def test_valid_headers_are_accepted_and_invalid_headers_are_refused(
    servers: Any, headers: Any, status: int
) -> None:
    server = Now()
    async with serving(*[kind() for kind in servers[:-1]], server) as app:
        done = await post(app, tool("plain"), headers)
        assert (done.status, server.listed) == (status, status == 200)
        assert WORDS.get(status, b"") in done.body


async def test_allowed_hosts_and_origins_can_be_configured() -> None:
    async with serving(Now(), allowed_hosts=["api.example.com"], allowed_origins=["https://app.example.com"]) as app:
        fine = {"host": "api.example.com", "origin": "https://app.example.com"}
        assert (await post(app, tool("plain"), fine)).status == 200
        assert (await post(app, tool("plain"), {**fine, "origin": "http://localhost"})).status == 403
        assert (await post(app, tool("plain"), {**fine, "host": "localhost"})).status == 421


# --- headers that must match the body -------------------------------------------------------------------------


@pytest.mark.full
@every_app
@each(
    "headers",
    [
        *({"mcp-protocol-version": stated} for stated in (None, LATEST, "1999-01-01", "", f"{STATELESS}, {STATELESS}")),
        *({"mcp-method": method} for method in (None, "tools/list", "TOOLS/CALL", "tools/call, tools/call")),
        {"mcp-method": "=?base64?dG9vbHMvY2FsbA==?="},
        *({"mcp-name": name} for name in (None, "", "Plain", "plain, plain", "pl\x00ain", "plain\x7f", "plain\u00a0")),
        *({"mcp-name": f"=?base64?{name}?="} for name in ("UGxhaW4=", "cGxhaW4", "cGxhaW4===", "cGx haW4=", "/w==")),
        *({"mcp-name": name} for name in ("=?BASE64?cGxhaW4=?=", "=?base64?cGxhaW4=")),
        *([("mcp-protocol-version", stated)] for stated in (STATELESS, LATEST)),
        *([("mcp-method", method)] for method in ("tools/call", "tools/list")),
        *([("mcp-name", name)] for name in ("plain", "")),
    ],
)
async def test_headers_that_differ_from_the_body_are_refused(servers: Any, headers: Any) -> None:
    server = Now()
    async with serving(*[kind() for kind in servers[:-1]], server) as app:
        done = await post(app, tool("plain", "x"), headers)
        assert (done.status, done.code, done.answer["id"], server.listed) == (400, MISMATCH, "x", 0)


@each("uri", ["x:y", "file:///é", "=?base64?eA==?=", "a, b", " ", "a\nb", ""])
async def test_encoded_name_headers_are_accepted(uri: str) -> None:
    async with serving() as app:
        encoded = f"=?base64?{base64.b64encode(uri.encode()).decode()}?="
        assert (await post(app, lone(1, "resources/read", uri=uri), {"mcp-name": encoded})).status == 200


async def test_a_repeated_name_header_is_refused() -> None:
    async with serving() as app:
        message = lone(1, "resources/read", uri="a, b")
        sent = [(name, value) for name, value in mirrored(message).items() if name != "mcp-name"]
        done = await Visit(app, "POST", [*sent, ("mcp-name", "a"), ("mcp-name", "b")], [_data(message)]).end()
        assert (done.status, done.code) == (400, MISMATCH)


SMUGGLED = [
    # bodies that two parsers may read differently
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"plain","_meta":$M}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$M},"params":{"name":"plain","_meta":$M},'
    '"method":"tools/call"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret","name":"plain","_meta":$M}}',
    '{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools/call","params":{"name":"pl\\u0061in","_meta":$E}}',
]


@every_app
@each("body", SMUGGLED)
@each("session", [None, "x"])
async def test_headers_are_compared_with_the_parsed_body(servers: Any, body: str, session: str | None) -> None:
    meta = json.dumps(stating())
    data = body.replace("$M", meta).replace("$E", meta.replace("/", "\\/").replace("m", "\\u006d")).encode()
    async with serving(*[kind() for kind in servers]) as app:
        right = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "plain"}
        more = {} if session is None else {"mcp-session-id": session}
        done = await post(app, data, {**right, **more})
        assert (done.status, done.text) == (200, "plain")
        for name, value in (("mcp-method", "tools/list"), ("mcp-name", "secret")):
            done = await post(app, data, {**right, name: value, **more})
            assert (done.status, done.code) == (400, MISMATCH)
        for version in (LATEST, None):
            done = await post(app, data, {**right, "mcp-protocol-version": version, **more})
            asked_for_a_session = session is not None and len(servers) > 1
            assert (done.status, done.code) == ((404, INVALID) if asked_for_a_session else (400, MISMATCH))


async def test_the_headers_of_a_stateless_request_in_a_session_are_checked_too() -> None:
    async with serving() as app:
        begun = await post(app, initialize(LATEST), {"mcp-method": None})
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": LATEST}
        assert (await post(app, INITIALIZED, list(session.items()))).status == 202
        data = _data(tool("plain")).replace(b"/protocol", b"\\/protocol")
        done = await post(app, data, {**session, "mcp-method": None})
        assert (done.status, done.code) == (400, MISMATCH)
        done = await post(app, [tool("plain")], {**session, "mcp-method": None})
        assert done.status == 400


@each(
    ("arguments", "headers", "fine"),
    [
        ({}, {"mcp-param-other": "x"}, True),
        ({"region": "eu"}, {"MCP-PARAM-REGION": " eu "}, True),
        ({"size": 42, "deep": {"dry": True}}, {"mcp-param-size": "42", "mcp-param-dry": "true"}, True),
        ({"region": "eu"}, {}, False),
        ({"region": "eu"}, {"mcp-param-region": "us"}, False),
        ({"region": None}, {"mcp-param-region": "eu"}, False),
        ({"deep": {"dry": True}}, {}, False),
    ],
)
async def test_argument_headers_must_match_the_arguments(arguments: Any, headers: Any, fine: bool) -> None:
    async with serving() as app:
        for name in ("regional", "plain"):
            done = await post(app, tool(name, **arguments), headers)
            assert (done.status == 200) is (fine or name == "plain")
            if done.status != 200:
                assert (done.status, done.code) == (400, MISMATCH)


async def test_a_repeated_argument_header_is_refused() -> None:
    async with serving() as app:
        message = tool("regional", region="a, b")
        assert (await post(app, message, [("mcp-param-region", "a, b")])).status == 200
        done = await post(app, message, [("mcp-param-region", "a"), ("mcp-param-region", "b")])
        assert (done.status, done.code) == (400, MISMATCH)


async def test_argument_headers_are_checked_for_tools_that_are_added_later() -> None:
    server = Now()
    async with serving(server) as app:
        for _ in range(5):
            assert (await post(app, tool("plain"))).status == 200
        assert server.listed == 1
        server.tools.append(server.regional("later"))
        assert (await post(app, tool("later", region="eu"))).code == MISMATCH
        assert (await post(app, tool("later", region="eu"), {"mcp-param-region": "eu"})).status == 200
        server.tools[1] = mcp.Tool(name="regional", input_schema=mcp.ToolInputSchema())
        assert (await post(app, tool("regional", region="eu"))).status == 200


@each(
    ("name", "arguments", "headers", "status", "reads"),
    [
        ("unknown-{}", {}, {}, 200, 1),
        ("regional", {"region": "eu"}, {"mcp-param-region": "us"}, 400, 2),
    ],
)
async def test_calls_that_need_the_list_read_it_once_a_second_and_after_a_change(
    name: str, arguments: Any, headers: Any, status: int, reads: int, monkeypatch: Any
) -> None:
    server, clock = Now(), [0.0]
    monkeypatch.setattr("mcp_bindgen.http.server.mirrored_headers.monotonic", lambda: clock[0])
    async with serving(server, principal=lambda scope: scope.get("who")) as app:

        async def ask(who: str, times: int = 1) -> None:
            for number in range(times):
                of_the_call = {"progressToken": number, "traceparent": f"00-{number:032x}-00f067aa0ba902b7-01"}
                called = tool(name.format(number // 2), meta=of_the_call, **arguments)
                assert (await post(app, called, headers, who=who)).status == status

        await ask("ada", 9)
        assert server.listed == reads
        await ask("eve")  # lists may differ
        assert server.listed == reads + 1
        server.tools.append(server.regional("silent"))
        clock[0] += 2
        await ask("eve", 9)
        assert server.listed == 2 * reads + 1
        assert (await post(app, tool("silent", region="eu"), who="eve")).code == MISMATCH
        server.tools.append(server.regional("told"))
        await server.broadcast(lambda client: client.notify_tool_list_changed())
        assert (await post(app, tool("told", region="eu"), who="eve")).code == MISMATCH


@each("cursors", [["a", "b", "a"], ["a"], None])
async def test_a_list_of_tools_without_end_ends_no_call(
    cursors: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    class Endless(Now):
        async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
            page = await super().list_tools(params, ctx)
            more = str(self.listed) if cursors is None else cursors[self.listed % len(cursors)]
            return page.model_copy(update={"next_cursor": more})

    server = Endless()
    async with serving(server) as app:
        assert (await post(app, tool("regional", region="eu"))).code == MISMATCH
        for _ in range(2):
            assert (await post(app, tool("unknown"))).status == 200
    assert server.listed <= (2000 if cursors is None else 10)
    assert "tools/list is not read to its end: Invalid answer: the list has" in caplog.text


async def test_the_internal_lookup_of_tools_sends_no_notification_to_the_client() -> None:
    async with serving() as app:
        done = await post(app, tool("regional", region="eu", meta=TALKS))
        assert (done.status, done.kind, done.code) == (400, "application/json", MISMATCH)


# --- limits ---------------------------------------------------------------------------------------------------


async def test_bodies_above_the_limit_are_refused_with_or_without_a_content_length() -> None:
    async with serving(Then(), Now(), limits=HttpLimits(message=1000)) as app:
        body = _data(tool("plain", text="x" * 2000))
        sent = {**mirrored(tool("plain")), "content-length": str(len(body))}
        assert (await post(app, body, sent, parts=[None])).status == 413
        assert (await post(app, body, {**sent, "content-length": "9" * 5000}, parts=[None])).status == 413
        for parts in ([body], [body[:500], body[500:]], [b" " * 100] * 20, [b" " * 1001, None]):
            assert (await post(app, body, mirrored(tool("plain")), parts=list(parts))).status == 413
        small = _data(tool("plain"))
        for length in (str(len(small)), "x", "-1", "1e9", ""):
            assert (await post(app, small, {**mirrored(tool("plain")), "content-length": length})).status == 200
        pieces: list[bytes | None] = [small[place : place + 7] for place in range(0, len(small), 7)]
        assert (await post(app, small, mirrored(tool("plain")), parts=[b"", *pieces, b""])).status == 200


@each("parts", [[None], [b"{", None]])
async def test_a_body_that_never_arrives_gets_408(parts: Any) -> None:
    async with serving(limits=HttpLimits(arrival=0.1)) as app:
        assert (await post(app, tool("plain"), parts=parts)).status == 408


async def test_a_trickling_body_gets_408() -> None:
    async with serving(limits=HttpLimits(arrival=0.2)) as app:
        visit = begin(app, tool("plain"), parts=[None])
        await visit.gone()
        assert visit.status == 0

        assert (await begin(app, tool("plain"), parts=[b" "] * 1000, pause=0.05).end()).status == 408


async def test_requests_above_the_limit_get_429_with_retry_after() -> None:
    server = Now()
    async with serving(Then(), server, limits=HttpLimits(requests=2)) as app:
        visits = [begin(app, tool("wait", id_)) for id_ in (1, 1)]
        await until(lambda: len(server.events) == 2)
        done = await post(app, tool("plain"))
        assert (done.status, done.headers["retry-after"]) == (429, "1")
        await visits[0].gone()
        assert (await post(app, tool("plain"))).status == 200
        server.go.set()
        assert (await visits[1].end()).status == 200


# --- disconnecting clients ------------------------------------------------------------------------------------


@each("name", ["wait", "talk and wait"])
async def test_a_disconnecting_client_cancels_its_request(name: str) -> None:
    server = Now()
    async with serving(Then(), server) as app:
        visit = begin(app, tool(name, meta=TALKS))
        await until(lambda: server.events if name == "wait" else visit.status)
        visit.cut()
        await visit.task
        assert server.events == (["begun", "cancelled", "freed"] if name == "wait" else [])
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_client_that_stops_reading_is_given_up() -> None:
    async with serving(Now(), limits=HttpLimits(write_timeout=0.1)) as app:
        visit = begin(app, tool("talk", meta=TALKS, times=50))
        visit.flows.clear()
        await visit.task
        assert visit.status == 0
        late = begin(app, tool("talk", meta=TALKS))
        await until(lambda: late.status)
        late.flows.clear()
        await late.task


# --- subscriptions --------------------------------------------------------------------------------------------


def listen(id_: object, **wanted: Any) -> dict[str, Any]:
    """Return a `subscriptions/listen` request."""
    return lone(id_, "subscriptions/listen", notifications=wanted)


async def test_a_subscription_is_a_stream_that_stays_open() -> None:
    server = Now()
    async with serving(Then(), server, keep_alive=0.05) as app:
        visit = begin(app, listen("s", toolsListChanged=True, promptsListChanged=True))
        (agreed,) = await visit.several(1)
        assert (visit.status, visit.kind, agreed["method"]) == (200, "text/event-stream", ACKNOWLEDGED)
        assert agreed["params"] == {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION: "s"}}
        assert (await post(app, tool("change"))).status == 200
        _, changed = await visit.several(2)
        assert (changed["method"], changed["params"]["_meta"]) == (TOOLS, {SUBSCRIPTION: "s"})
        await until(lambda: visit.body.count(b": keep-alive\n\n") >= 2)
        await visit.gone()
        assert server.connections == []


async def test_subscriptions_get_a_final_result_when_the_server_stops() -> None:
    server = Now()
    async with serving(Then(), server) as app:
        visits = [begin(app, listen(7, toolsListChanged=True)) for _ in range(3)]
        for visit in visits:
            await visit.several(1)
    for visit in visits:
        done = await visit.end()
        assert done.answer["result"] == {
            "resultType": "complete",
            "_meta": {SUBSCRIPTION: 7, SERVER_INFO: {"name": "now", "version": "1"}},
        }
    assert server.audience == []


async def test_a_subscriber_that_does_not_read_does_not_delay_other_subscribers() -> None:
    server = Now()
    async with serving(Then(), server, limits=HttpLimits(write_timeout=1)) as app:
        stuck, fine = (begin(app, listen(id_, toolsListChanged=True)) for id_ in (1, 2))
        await stuck.several(1)
        await fine.several(1)
        stuck.flows.clear()
        for _ in range(20):
            await server.broadcast(lambda client: client.notify_tool_list_changed())
        assert len(await fine.several(21)) == 21
        assert not stuck.task.done()
        await stuck.task
        assert len(server.connections) == 1
        await fine.gone()


# --- both eras ------------------------------------------------------------------------------------------------


async def test_sessions_and_stateless_requests_work_side_by_side() -> None:
    async with serving() as app:
        sessions: list[dict[str, Any]] = []
        for _ in range(3):
            done = await post(app, initialize(LATEST), {"mcp-method": None})
            assert done.status == 200
            sessions.append({"mcp-session-id": done.headers["mcp-session-id"], "mcp-protocol-version": LATEST})
            assert (await post(app, INITIALIZED, list(sessions[-1].items()))).status == 202
        for turn in range(10):
            session, old = sessions[turn % 3], request(turn, "tools/call", {"name": "x"})
            one = begin(app, old, {"mcp-method": None, "mcp-name": None, **session})
            other = begin(app, tool("y", turn))
            done = await one.end()
            assert f"{LATEST} x".encode() in done.body
            assert (await other.end()).text == "y"
        assert (await post(app, b"", list(sessions[0].items()), method="DELETE")).status == 204
        assert (await post(app, tool("y"), {"mcp-session-id": sessions[0]["mcp-session-id"]})).status == 200


async def test_a_stateful_server_returns_no_error_code_of_the_stateless_revision() -> None:
    async with serving(Then()) as app:
        done = await post(app, lone(1, "server/discover"))
        assert done.status == 400
        assert done.code not in (MISMATCH, LACKING, UNSUPPORTED)


# --- mounted in other applications ----------------------------------------------------------------------------


@each(
    ("mount", "path", "fine"),
    [
        ("/mcp", "/mcp/", True),
        ("/mcp", "/mcp/mcp", True),
        ("/api", "/api/mcp", True),
        ("/api", "/api/", True),
        ("/api", "/api/other", False),
        ("/api", "/mcp", False),
    ],
)
async def test_an_endpoint_can_be_mounted_in_another_application(mount: str, path: str, fine: bool) -> None:
    events: list[str] = []

    class Lives(Now):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            events.append("up")
            yield
            events.append("down")

    app = HttpApp(Then(), Lives())
    outer = Starlette(
        routes=[Mount(mount, app), Route("/hello", lambda request: PlainTextResponse("hello"))], lifespan=app.lifespan
    )
    async with living(outer):
        assert events == ["up"]
        done = await post(outer, tool("plain"), path=path)
        assert (done.status == 200) is fine
        assert (b"; this server answers at /api/mcp" in done.body) is (path == "/api/other")
        assert (await Visit(outer, "GET", [], [b""], "/hello").end()).body == b"hello"
    assert events == ["up", "down"]


@asynccontextmanager
async def living(app: Any) -> AsyncGenerator[list[Any]]:
    """Drive the lifespan of an application by hand; yield the messages that it sends."""
    said: list[Any] = []
    stop, heard = asyncio.Event(), asyncio.Event()
    asked = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        kind = next(asked)
        if kind == "lifespan.shutdown":
            await stop.wait()
        return {"type": kind}

    async def send(message: Any) -> None:
        said.append(message)
        heard.set()

    task = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send))
    await heard.wait()
    try:
        yield said
    finally:
        stop.set()
        await task


@each("when", ["startup", "shutdown"])
async def test_a_failed_startup_or_shutdown_is_reported_to_the_asgi_server(when: str) -> None:
    class Fails(Now):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            if when == "startup":
                raise LookupError("no database")
            yield
            raise LookupError("no database")

    said: list[dict[str, Any]] = []
    with pytest.raises(LookupError):
        async with living(HttpApp(Fails())) as messages:
            said = messages
    assert (said[-1]["type"], "no database" in said[-1]["message"]) == (f"lifespan.{when}.failed", True)
    assert [message["type"] for message in said[:-1]] == ["lifespan.startup.complete"] * (when == "shutdown")


async def test_web_sockets_are_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    await HttpApp(Now())({"type": "websocket", "path": "/mcp", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


# --- load -----------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_many_requests_at_once_do_not_get_mixed_up() -> None:
    dice = random.Random(4)
    async with serving() as app:

        async def one(number: int) -> None:
            name = dice.choice(["talk", "plain", f"tool {number}", "break", "nothing"])
            visit = begin(app, tool(name, number, meta={"progressToken": number}, times=dice.randrange(5)))
            if dice.random() < 0.2:
                await asyncio.sleep(dice.random() / 100)
                await visit.gone()
            if visit.over:
                assert visit.answer["id"] == number
                for told in visit.messages[:-1]:
                    assert told["params"]["progressToken"] == number
                assert ("error" in visit.answer) is (name == "break")

        async with asyncio.TaskGroup() as tasks:
            for number in range(500):
                tasks.create_task(one(number))
        await anyio.wait_all_tasks_blocked()  # a cancelled task ends in its next turn
        assert len(asyncio.all_tasks()) == 1
