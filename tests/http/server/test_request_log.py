"""Structured logs: one line of JSON for each request and each refusal, with fields and without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mcp_bindgen import v2025_11_25
from mcp_bindgen.http import HttpApp, SseApp
from mcp_bindgen.http.server.access import HttpRequest
from mcp_bindgen.http.server.app import Probes
from mcp_bindgen.http.server.errors import HttpError
from mcp_bindgen.http.server.request_log import RequestRecord
from mcp_bindgen.runtime import Identity, log_format, logs
from mcp_bindgen.runtime.log_format import JsonFormatter
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import lone, request
from tests.harness.effort import each
from tests.harness.http_wires import BOB, EVE, Wires, stateless, who, wires

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SECRETS = {"authorization": "Bearer s3cret-token", "cookie": "session=s3cret-cookie"}


class Tools(v2025_11_25.Server):
    """Server with one tool, which logs."""

    info = mcp.Implementation(name="tools", version="1")

    async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[mcp.Tool(name="echo", input_schema=mcp.ToolInputSchema())])

    async def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult:
        logging.getLogger("mine").warning("a line of the handler")
        return mcp.CallToolResult(content=[mcp.TextContent(text="fine")])

    async def read_resource(self, params: Any, ctx: Any) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult(contents=[])


class Lines:
    """Log records, as JSON."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def of(self, logger: str) -> list[dict[str, Any]]:
        """Return the records of a logger in order."""
        return [one for one in [json.loads(line) for line in self.text.splitlines()] if one["logger"] == logger]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.of("mcp_bindgen.requests")


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Log as JSON while a test runs, in place of the handlers of the process."""
    root, found = logging.getLogger(), Lines()
    handlers, levels = root.handlers[:], [(one, one.level) for one in (logs.requests, log_format.start)]
    root.handlers = [logging.StreamHandler(found.stream)]
    try:
        log_format.log_as_json()
        yield found
    finally:
        root.handlers = handlers
        logging.captureWarnings(False)
        for logger, level in levels:
            logger.setLevel(level)


async def tell(http: Wires, message: Any, **headers: str) -> Any:
    """Send a stateless request with secrets in its headers."""
    wire = await http.ask("POST", message, **stateless(message), **SECRETS, **headers)
    await wire.status()
    return wire


async def test_stateless_and_session_requests_are_logged_with_their_fields(lines: Lines) -> None:
    call = {"name": "echo", "arguments": {"text": "s3cret-argument"}}
    async with wires(HttpApp(Tools(), principal=who)) as http:
        wire = await tell(http, lone(1, "tools/call", **call), x_request_id="abc-1", traceparent=PARENT, **BOB)
        assert wire.headers["x-request-id"] == "abc-1"
        session = await http.begin(user=BOB)
        assert await (await http.call(session, "echo")).status() == 200
        read = request(3, "resources/read", {"uri": "note://s3cret-uri", "_meta": {"traceparent": PARENT}})
        assert await (await http.ask("POST", read, **session)).status() == 200
        batch = [request(1, "ping"), request(2, "tools/call", {"name": "x\n\x1b[2Jy"})]
        assert await (await http.ask("POST", batch, **session)).status() == 400
    first, _, _, second, third, fourth = lines.requests
    assert second["duration_ms"] >= 0
    common = {"level": "INFO", "remote": "127.0.0.1", "http_method": "POST", "path": "/mcp", "principal": "bob"}
    expected = {"request_id": "abc-1", "trace_id": TRACE, "method": "tools/call", "tool": "echo", "status": 200}
    assert first.items() >= (common | expected).items()
    assert second.items() >= (common | {"method": "tools/call", "tool": "echo", "status": 200}).items()
    assert third.items() >= (common | {"method": "resources/read", "trace_id": TRACE, "status": 200}).items()
    assert "tool" not in third
    assert fourth.items() >= {"method": "ping,tools/call", "status": 400}.items()
    assert "tool" not in fourth  # the name is not a valid tool name
    (said, *_) = lines.of("mine")
    assert said["request_id"] == "abc-1"  # records of a handler carry the id of their request
    for secret in ("s3cret", session["mcp_session_id"], "\x1b"):
        assert secret not in lines.text


async def test_sessionless_and_sse_requests_are_logged_with_their_fields(lines: Lines) -> None:
    async with wires(HttpApp(Tools(), sessions=False)) as http:
        message = request(1, "tools/call", {"name": "echo"})
        assert await (await http.ask("POST", message, mcp_protocol_version="2025-11-25")).status() == 200
    async with wires(SseApp(Tools())) as http:
        wire, path = await http.open_sse()
        assert await (await http.ask("POST", message, path, host="localhost")).status() == 202
        await wire.stream.aclose()
    (alone,) = [one for one in lines.requests if one["path"] == "/mcp"]
    assert alone.items() >= {"method": "tools/call", "tool": "echo", "status": 200}.items()
    posted = [one for one in lines.requests if one["path"] == "/messages"]
    assert [one["method"] for one in posted] == ["initialize", "notifications/initialized", "tools/call"]
    assert path.partition("session_id=")[2] not in lines.text


async def test_a_refusal_is_logged_with_the_fields_of_its_request(lines: Lines) -> None:
    async with wires(HttpApp(Tools(), principal=who)) as http:
        session = await http.begin(user=BOB)
        assert await (await http.call(session | EVE, "echo")).status() == 404
        assert await (await http.ask("GET", host="evil.example")).status() == 421
        assert await (await http.ask("GET", path="/mcp%3Fsession_id=s3cret?token=s3cret")).status() == 404
    (line,) = lines.of("mcp_bindgen.audit")
    refused = next(one for one in lines.requests if one.get("principal") == "eve")
    assert line.items() >= {"reason": "a session of another user", "principal": "eve"}.items()
    assert (line["request_id"], [one["status"] for one in lines.requests[-2:]]) == (refused["request_id"], [421, 404])
    assert "path" not in lines.requests[-1]
    for secret in ("s3cret", session["mcp_session_id"]):
        assert secret not in lines.text


class AccessPolicy:
    """Access policy that accepts one token."""

    metadata_path: str | None = None

    def metadata(self) -> bytes:
        return b"{}"

    async def authenticate(self, request: HttpRequest) -> Identity:
        if request.headers.get(b"authorization") != b"Bearer s3cret-token":
            raise HttpError(401, "no token")
        return Identity(issuer="https://a.example", subject="ada")

    def needed(self, operation: Any) -> frozenset[str]:
        return frozenset()

    def challenge(self, missing: Any) -> Sequence[tuple[bytes, bytes]]:
        return ()


async def test_the_principal_of_a_token_is_logged_without_the_token(lines: Lines) -> None:
    async with wires(HttpApp(Tools(), auth=AccessPolicy())) as http:
        assert (await tell(http, lone(1, "tools/list"))).json["id"] == 1
        assert (
            await (await http.ask("POST", lone(1, "tools/list"), authorization="Bearer s3cret-guess")).status() == 401
        )
    known, stranger = lines.requests
    assert json.loads(known["principal"]) == ["https://a.example", "ada", None]
    assert "principal" not in stranger
    assert "s3cret" not in lines.text


def test_a_refusal_for_missing_scopes_is_logged_with_its_fields(lines: Lines) -> None:
    identity = Identity(issuer="https://a.example", subject="ada\n\x00forged", client="cli")
    with pytest.raises(Exception, match="Insufficient scope"):
        identity.require("write")
    (line,) = lines.of("mcp_bindgen.audit")
    wanted = {"issuer": identity.issuer, "subject": identity.subject, "client": "cli", "reason": "insufficient scope"}
    assert line.items() >= wanted.items()
    assert len(lines.text.splitlines()) == 1


@each(
    ("headers", "expected"),
    [
        ([(b"x-request-id", b"Req_1.a-b")], {"request_id": "Req_1.a-b"}),
        ([(b"x-request-id", b"a" * 129)], {}),
        ([(b"x-request-id", b'"}\n{"a":1')], {}),
        ([(b"x-request-id", b"")], {}),
        ([(b"x-request-id", "\u00b2\u00e9".encode())], {}),
        ([(b"x-request-id", b"a"), (b"x-request-id", b"b")], {}),
        ([(b"traceparent", PARENT.encode())], {"trace_id": TRACE}),
        ([(b"traceparent", f"01-{TRACE}-b7ad6b7169203331-01-more".encode())], {"trace_id": TRACE}),
        ([(b"traceparent", f"ff-{TRACE}-b7ad6b7169203331-01".encode())], {}),
        ([(b"traceparent", b"00-" + b"0" * 32 + b"-b7ad6b7169203331-01")], {}),
        ([(b"traceparent", PARENT.upper().encode())], {}),
        ([(b"traceparent", PARENT.encode() + b"\n")], {}),
    ],
)
def test_only_well_formed_request_and_trace_ids_are_used(headers: Any, expected: dict[str, str]) -> None:
    async def send(message: Any) -> None: ...

    scope: Any = {"headers": headers, "client": ("x" * 500, 0), "method": "POST", "path": "/mcp"}
    fields = RequestRecord(scope, send, None).fields
    assert {name: fields[name] for name in expected} == expected
    assert expected.get("request_id", fields["request_id"]) == fields["request_id"]
    assert "request_id" in expected or (len(fields["request_id"]) == 32 and fields["request_id"].isalnum())
    assert ("trace_id" in fields) == ("trace_id" in expected)
    assert len(fields["remote"]) == 100


def test_large_batches_are_logged_without_their_methods() -> None:
    async def send(message: Any) -> None: ...

    scope: Any = {"headers": [], "client": None, "method": "POST", "path": "/mcp"}
    call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 70_000}})
    for message, method in (
        ([call], None),
        (call, "tools/call"),
        ([request(1, "ping")], "ping"),
        ("\x00", None),
        ([], None),
    ):
        record = RequestRecord(scope, send, None)
        record.read(json.dumps(message).encode())
        assert record.fields.get("method") == method


def test_hostile_text_cannot_add_a_log_line_or_replace_a_field() -> None:
    hostile = 'x"\n{"level": "FORGED"}\r\x1b[2J\u2028\ud800'
    try:
        raise ValueError(hostile)
    except ValueError:
        record = logging.LogRecord("n", 40, "", 1, "%s", (hostile,), sys.exc_info())
    vars(record)["fields"] = {"level": "FORGED", "time": "never", "own": hostile, "long": "y" * 9000}
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    found = json.loads(line)
    assert (found["level"], found["message"], found["own"]) == ("ERROR", hostile, hostile)
    assert found["time"] != "never"
    assert len(found["long"]) == logs.MAX_CHARACTERS
    assert "ValueError" in found["exception"]


async def test_a_probe_is_logged_without_the_fields_of_an_earlier_request(lines: Lines) -> None:
    app = HttpApp(Tools())

    async def away() -> bool:
        return False

    app.probes = Probes(lambda: True, away)
    token = log_format.request_fields.set({"request_id": "before"})  # left by an earlier request
    try:
        async with wires(app) as http:
            assert await (await http.ask("GET", path="/readyz")).status() == 503
    finally:
        log_format.request_fields.reset(token)
    (told,) = [one for one in lines.of("mcp_bindgen") if one["message"].startswith("not ready")]
    assert "request_id" not in told


async def test_requests_are_not_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with wires(HttpApp(Tools())) as http:
        assert "x-request-id" not in (await tell(http, lone(1, "tools/list"))).headers
    assert not [one for one in caplog.records if one.name == "mcp_bindgen.requests"]
