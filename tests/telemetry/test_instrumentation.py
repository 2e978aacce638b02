"""Traces and metrics: recorded attributes on both sides, data that is never recorded, and no cost when unused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import anyio
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp, HttpLimits
from mcp_bindgen.runtime import Limits, Options, ProtocolError, RequestTimeout, connect, serve
from mcp_bindgen.runtime.protocol import observation
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.telemetry import instrument, instrumentation, uninstrument
from tests.harness.checked_connections import STATELESS, Raw, connected, lone, played, refused, request, running, until
from tests.harness.http_wires import listening, stateless, wires
from tests.harness.leaping_clock import leaping_clock
from tests.harness.shop import Customer, Shop

LATEST = "2025-11-25"
SECRET = "hunter2"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Seen:
    """Exported spans and metrics."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Return all spans that have ended, the oldest first."""
        return self._spans.get_finished_spans()

    def span(self, kind: SpanKind, method: str) -> ReadableSpan:
        """Return the newest span of a method."""
        return [one for one in self.spans if one.kind is kind and attributes(one)["mcp.method.name"] == method][-1]

    def points(self, name: str) -> list[Any]:
        """Return the points of a metric."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return [one for scope in scopes for each in scope.metrics if each.name == name for one in each.data.data_points]

    def all(self) -> str:
        """Return all exported data as text."""
        spans = "\n".join(f"{span.to_json()} {span.status.description}" for span in self.spans)
        data = self._reader.get_metrics_data()
        return spans + (data.to_json() if data else "")


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def ids(span: ReadableSpan) -> tuple[int, int, int]:
    """Return the ids of a span's parent (or 0), of the span and of its trace."""
    assert span.context is not None
    return span.parent.span_id if span.parent else 0, span.context.span_id, span.context.trace_id


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Export all spans and metrics to a `Seen`."""
    found = Seen()
    instrument(tracer_provider=found.tracers, meter_provider=found.meters)
    yield found
    uninstrument()


class Tools:
    """Tools of any revision."""

    types: Any
    limits = Limits(in_flight=2, waiting=1)

    def __init__(self) -> None:
        self.found: list[Any] = []

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.types is v2026_07_28.types else {}
        return self.types.ListToolsResult(tools=[], **more)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        self.found.append((trace.get_current_span().get_span_context(), baggage.get_baggage("who")))
        if params.name == "refuse":
            raise ProtocolError(-32602, f"no such city: {SECRET}", SECRET)
        if params.name == "break":
            raise ValueError(SECRET)
        if params.name == "wait":
            await anyio.sleep_forever()
        if params.name == "roots":
            await ctx.list_roots()
        content = [self.types.TextContent(text=SECRET)]
        more = {"structured_content": {"isError": True}} if params.name == "quote" else {}
        return self.types.CallToolResult(content=content, is_error=True if params.name == "fail" else None, **more)

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.types is v2026_07_28.types else {}
        return self.types.ReadResourceResult(contents=[], **more)

    async def get_prompt(self, params: Any, ctx: Any) -> Any:
        return self.types.GetPromptResult(messages=[])

    async def on_roots_list_changed(self, params: Any, ctx: Any) -> None:
        self.found.append(ctx)


class Then(Tools, v2025_11_25.Server):
    types = v2025_11_25.types
    info = v2025_11_25.types.Implementation(name="tools", version="1")


class Now(Tools, v2026_07_28.Server):
    types = v2026_07_28.types
    info = v2026_07_28.types.Implementation(name="tools", version="1")


class First(Tools, v2024_11_05.Server):
    types = v2024_11_05.types


class ThenClient(v2025_11_25.Client):
    async def on_list_roots(self, params: Any, ctx: Any) -> Any:
        return v2025_11_25.types.ListRootsResult(roots=[])


NowClient = v2026_07_28.Client
BOTH = pytest.mark.parametrize(("client", "server"), [(ThenClient, Then), (NowClient, Now)], ids=[LATEST, STATELESS])


# --- one trace ------------------------------------------------------------------------------------------------


@BOTH
async def test_both_sides_of_a_call_share_one_trace(client: Any, server: Any, seen: Seen) -> None:
    tools = server()
    with trace.use_span(seen.tracers.get_tracer("a program").start_span("work")) as work:
        async with connected(client(), tools) as connection:
            await connection.client.call_tool("echo", {"password": SECRET})
    asked, handled = (seen.span(kind, "tools/call") for kind in (SpanKind.CLIENT, SpanKind.SERVER))
    ours = work.get_span_context()
    assert [ids(asked)[0], ids(handled)[0]] == [ours.span_id, ids(asked)[1]]
    assert ids(handled)[2] == ids(asked)[2] == ours.trace_id
    assert tools.found[0][0] == handled.context, "what a handler does belongs to its request"
    (params,) = connection.ours.params("tools/call")
    assert params["_meta"]["traceparent"].split("-")[2] == f"{ids(asked)[1]:016x}"


async def test_methods_of_extensions_are_traced_like_core_methods(seen: Seen) -> None:
    left, right = pair()
    customer: Any = Customer()
    async with running(serve(right, Shop())), connect(left, customer) as client:
        await client.get_stock("pear")
    asked, handled = (seen.span(kind, "stock/get") for kind in (SpanKind.CLIENT, SpanKind.SERVER))
    assert ids(handled)[0] == ids(asked)[1]
    left, right = pair()
    async with running(serve(right, Shop())):
        await Raw(left).ask(lone(1, "stock/get", item="pear"))
        await left.close()
    assert attributes(seen.span(SpanKind.SERVER, "stock/get"))["rpc.response.status_code"] == "-32021"


async def test_requests_of_a_handler_belong_to_the_trace_of_its_call(seen: Seen) -> None:
    async with connected(ThenClient(), Then()) as connection:
        await connection.client.call_tool("roots")
    call = seen.span(SpanKind.SERVER, "tools/call")
    asked, answered = (seen.span(kind, "roots/list") for kind in (SpanKind.CLIENT, SpanKind.SERVER))
    assert (asked.parent, ids(answered)[0]) == (call.context, ids(asked)[1])


@pytest.mark.parametrize("message", [request(1, "tools/call"), lone(1, "tools/call")], ids=[LATEST, STATELESS])
async def test_the_trace_context_of_a_request_reaches_its_handler(message: Any, seen: Seen) -> None:
    server = Now() if "params" in message else Then()
    said = {"name": "x", **message.get("params", {})}
    said["_meta"] = {**said.get("_meta", {}), "traceparent": TRACEPARENT, "tracestate": "a=b", "baggage": "who=ada"}
    async with played(server) as (raw, _):
        if isinstance(server, Then):
            await raw.introduce(LATEST)
        await raw.ask({**message, "params": said})
    ((found, who),) = server.found
    assert (f"{found.trace_id:032x}", found.trace_state.get("a"), who) == (TRACE, "b", "ada")
    assert f"{ids(seen.span(SpanKind.SERVER, 'tools/call'))[0]:016x}" == PARENT


async def test_a_trace_context_is_read_from_params_that_do_not_declare_meta(seen: Seen) -> None:
    server = First()
    async with played(server) as (raw, _):
        await raw.introduce("2024-11-05")
        await raw.ask(request(1, "tools/call", {"name": "x", "_meta": {"traceparent": TRACEPARENT}}))
    ((found, _),) = server.found
    assert f"{found.trace_id:032x}" == TRACE


async def test_the_span_of_an_http_request_is_linked_or_the_parent(seen: Seen) -> None:
    """The trace context in a message is the parent, and the span of the HTTP request is linked."""
    app = HttpApp(Now())

    async def traced(scope: Any, receive: Any, send: Any) -> None:
        with trace.use_span(seen.tracers.get_tracer("http").start_span("POST"), end_on_exit=True):
            await app(scope, receive, send)

    traced.leave = app.leave  # type: ignore[attr-defined]
    async with wires(traced) as http:  # type: ignore[arg-type]
        for carried in ({"traceparent": TRACEPARENT}, {}):
            message = lone(1, "tools/call", name="x")
            message["params"]["_meta"] |= carried
            assert await (await http.ask("POST", message, **stateless(message))).status() == 200
    linked, nested = [one for one in seen.spans if one.kind is SpanKind.SERVER]
    posts = [ids(one)[1] for one in seen.spans if one.name == "POST"]
    assert (f"{ids(linked)[0]:016x}", [one.context.span_id for one in linked.links]) == (PARENT, posts[:1])
    assert (ids(nested)[0], list(nested.links)) == (posts[1], [])


async def test_an_explicit_trace_context_is_not_replaced(seen: Seen) -> None:
    async with connected(NowClient(), Now()) as connection:
        await connection.client.list_tools(meta={"traceparent": TRACEPARENT})
    (params,) = connection.ours.params("tools/list")
    assert params["_meta"]["traceparent"] == TRACEPARENT


# --- attacks --------------------------------------------------------------------------------------------------


CONTEXTS: dict[str, dict[str, Any]] = {
    "no hex": {"traceparent": "00-zz-1-01"},
    "zeros": {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"},
    "no text": {"traceparent": 7, "baggage": ["a"], "tracestate": None},
    "long lists": {"tracestate": "x" * 10_000, "baggage": ",".join(f"a{n}={n}" for n in range(10_000))},
    "long": {"traceparent": "00-" + "f" * 100_000},
}


@pytest.mark.parametrize("carried", CONTEXTS)
async def test_an_invalid_trace_context_is_ignored(carried: str, seen: Seen) -> None:
    message = lone(1, "tools/call", name="x")
    message["params"]["_meta"] |= CONTEXTS[carried]
    async with played(Now()) as (raw, _):
        assert "result" in await raw.ask(message)
    assert seen.span(SpanKind.SERVER, "tools/call").parent is None


async def test_an_untrusted_trace_context_is_only_linked() -> None:
    found, server = Seen(), Now()
    instrument(tracer_provider=found.tracers, meter_provider=found.meters, trust=False)
    try:
        message = lone(1, "tools/call", name="x")
        message["params"]["_meta"] |= {"traceparent": TRACEPARENT, "baggage": "who=eve"}
        async with played(server) as (raw, _):
            await raw.ask(message)
    finally:
        uninstrument()
    span = found.span(SpanKind.SERVER, "tools/call")
    assert span.parent is None
    assert [f"{one.context.trace_id:032x}" for one in span.links] == [TRACE]
    assert server.found[0][1] is None


@BOTH
async def test_arguments_results_and_error_messages_are_not_recorded(client: Any, server: Any, seen: Seen) -> None:
    async with connected(client(), server()) as connection:
        for name in ("echo", "fail", "refuse", "break"):
            with pytest.raises(ProtocolError) if name in ("refuse", "break") else nullcontext():
                await connection.client.call_tool(name, {"password": SECRET})
        await connection.client.read_resource(f"https://ada:{SECRET}@x.example/?token={SECRET}")
        await connection.client.get_prompt("greet", {"name": SECRET})
    assert len(seen.spans) >= 12
    assert SECRET not in seen.all()
    assert not [event for span in seen.spans for event in span.events]


async def test_session_ids_are_not_recorded(seen: Seen) -> None:
    async with wires(HttpApp(Then())) as http:
        session = await http.begin()
        assert await (await http.call(session)).status() == 200
        assert await (await http.ask("DELETE", **session)).status() == 204
        await until(lambda: seen.points("mcp.server.session.duration"))
    assert session["mcp_session_id"] not in seen.all()


async def test_unknown_tool_names_appear_in_no_metric_and_no_span_name(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made-up names must not fill the memory of the metrics backend."""
    monkeypatch.setattr(instrumentation, "_MAX_NAMES", 5)

    class Strict(Then):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name.startswith("no"):
                raise ProtocolError(-32602, "Unknown tool")
            return await super().call_tool(params, ctx)

    async with played(Strict()) as (raw, _):
        await raw.introduce(LATEST)
        for n in range(30):
            await raw.ask(request(n, "tools/call", {"name": f"no{n}{'x' * 1000}"}))
            await raw.ask(request(n, "tools/call", {"name": f"tool{n}"}))
    names = {point.attributes.get("gen_ai.tool.name") for point in seen.points("mcp.server.operation.duration")}
    assert names == {None, *(f"tool{n}" for n in range(5))}
    calls = {span.name for span in seen.spans if attributes(span)["mcp.method.name"] == "tools/call"}
    assert calls == {"tools/call", *(f"tools/call tool{n}" for n in range(5))}
    assert max(len(attributes(span).get("gen_ai.tool.name", "")) for span in seen.spans) == 128


async def test_unknown_error_codes_are_recorded_as_other(seen: Seen) -> None:
    class Inventive(Then):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            raise ProtocolError(int(params.name), "whatever")

    async with played(Inventive()) as (raw, _):
        await raw.introduce(LATEST)
        for n, code in enumerate([*range(30), -32000, 10**40, -32602]):
            await raw.ask(request(n, "tools/call", {"name": str(code)}))
    calls = [one for one in seen.points("mcp.server.operation.duration") if "error.type" in one.attributes]
    for name in ("error.type", "rpc.response.status_code"):
        assert {one.attributes[name] for one in calls} == {"_OTHER", "-32000", "-32602"}
        assert {attributes(one)[name] for one in seen.spans if _called(one)} == {"_OTHER", "-32000", "-32602"}


# --- conventions ----------------------------------------------------------------------------------------------


@BOTH
async def test_span_attributes_follow_the_semantic_conventions(client: Any, server: Any, seen: Seen) -> None:
    async with connected(client(), server()) as connection:
        for _ in range(2):
            await connection.client.call_tool("echo")
        await connection.client.get_prompt("greet")
    for kind in (SpanKind.CLIENT, SpanKind.SERVER):
        call, prompt = seen.span(kind, "tools/call"), seen.span(kind, "prompts/get")
        assert (call.name, prompt.name) == ("tools/call echo", "prompts/get greet")
        told = attributes(call)
        assert kind is SpanKind.CLIENT or told.pop("jsonrpc.request.id").isdecimal()
        assert told == {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": client.revision,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "echo",
        }
        assert attributes(prompt)["gen_ai.prompt.name"] == "greet"
        assert call.status.status_code is StatusCode.UNSET


@BOTH
async def test_failures_are_recorded_with_their_error_type(client: Any, server: Any, seen: Seen) -> None:
    async with leaping_clock(), connected(client(), server()) as connection:
        calls = connection.client.with_options(timeout=0.1)
        await calls.call_tool("fail")
        for name, error in (("refuse", ProtocolError), ("break", ProtocolError), ("wait", RequestTimeout)):
            await refused(calls.call_tool(name), error)
        await until(lambda: len([one for one in seen.spans if one.kind is SpanKind.SERVER and _called(one)]) == 4)

    def failures(kind: SpanKind) -> list[Any]:
        found = [one for one in seen.spans if one.kind is kind and _called(one)]
        assert {one.status.status_code for one in found} == {StatusCode.ERROR}
        return [(attributes(one)["error.type"], attributes(one).get("rpc.response.status_code")) for one in found]

    told = [("tool_error", None), ("-32602", "-32602"), ("-32603", "-32603")]
    assert failures(SpanKind.CLIENT) == [*told, ("timeout", None)]
    assert failures(SpanKind.SERVER) == [*told, ("cancelled", None)]
    metrics = {point.attributes.get("error.type") for point in seen.points("mcp.client.operation.duration")}
    assert metrics >= {"tool_error", "-32602", "timeout"}


@BOTH
async def test_only_the_is_error_flag_marks_a_result_as_failed(client: Any, server: Any, seen: Seen) -> None:
    async with connected(client(), server()) as connection:
        await connection.client.call_tool("quote")
    assert {one.status.status_code for one in seen.spans if _called(one)} == {StatusCode.UNSET}


def _called(span: ReadableSpan) -> bool:
    return bool(attributes(span)["mcp.method.name"] == "tools/call")


async def test_durations_are_measured_by_method_and_revision(seen: Seen) -> None:
    async with connected(ThenClient(), Then()) as connection:
        await connection.client.call_tool("echo")
        await connection.client.list_tools()
    for side in ("client", "server"):
        points: list[HistogramDataPoint] = seen.points(f"mcp.{side}.operation.duration")
        counts = {dict(point.attributes or {})["mcp.method.name"]: point.count for point in points}
        expected = {"initialize": 1, "tools/call": 1, "tools/list": 1}
        assert counts == expected | ({"notifications/initialized": 1} if side == "server" else {})
        assert list(points[0].explicit_bounds)[:3] == [0.01, 0.02, 0.05]
        assert all("jsonrpc.request.id" not in (point.attributes or {}) for point in points)
        (session,) = seen.points(f"mcp.{side}.session.duration")
        assert session.attributes == {"mcp.protocol.version": LATEST}
    assert [point.value for point in seen.points("mcp_bindgen.active_requests")] == [0] * 4
    assert [point.value for point in seen.points("mcp_bindgen.open_sessions")] == [0, 0]


async def test_spans_record_the_transport(seen: Seen) -> None:
    client: Any = NowClient()
    async with listening(HttpApp(Now())) as port, connect(f"http://127.0.0.1:{port}/mcp", client) as asked:
        await asked.call_tool("echo")
    for kind in (SpanKind.CLIENT, SpanKind.SERVER):
        told = attributes(seen.span(kind, "tools/call"))
        assert (told["network.transport"], told["network.protocol.name"]) == ("tcp", "http")


async def test_enabled_resource_uris_are_recorded_in_spans_but_not_in_metrics() -> None:
    found = Seen()
    instrument(tracer_provider=found.tracers, meter_provider=found.meters, resource_uris=True)
    try:
        async with connected(ThenClient(), Then()) as connection:
            await connection.client.read_resource("note://1")
    finally:
        uninstrument()
    for kind in (SpanKind.CLIENT, SpanKind.SERVER):
        assert attributes(found.span(kind, "resources/read"))["mcp.resource.uri"] == "note://1"
    assert "note://1" not in str([point.attributes for point in found.points("mcp.server.operation.duration")])


async def test_refusals_are_counted_by_their_reason(seen: Seen) -> None:
    async with played(Then()) as (raw, _):
        await raw.introduce(LATEST)
        for n in range(5):
            await raw.send(request(n, "tools/call", {"name": "wait"}))
        for _ in range(2):
            assert (await raw.receive())["error"]["code"] == -32000
    async with wires(HttpApp(Now(), limits=HttpLimits(requests=0))) as http:
        message = lone(1, "tools/call", name="x")
        assert await (await http.ask("POST", message, **stateless(message))).status() == 429
    points = seen.points("mcp_bindgen.refused_requests")
    counted = {point.attributes["mcp_bindgen.reason"]: point.value for point in points}
    assert counted == {"too many messages of a connection wait": 2, "too many requests are in flight": 1}


async def test_a_call_restores_the_trace_context_of_its_caller(seen: Seen) -> None:
    before = context.get_current()
    async with connected(ThenClient(), Then()) as connection:
        await connection.client.call_tool("echo")
        await refused(connection.client.call_tool("refuse"))
        assert context.get_current() == before


# --- unused ---------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_opentelemetry_is_not_imported_without_instrumentation() -> None:
    code = """
import asyncio, sys
from mcp_bindgen import v2025_11_25 as v, v2026_07_28
from mcp_bindgen.runtime import run, serve, connect
from mcp_bindgen.http import HttpApp, http
from mcp_bindgen.runtime.transports.memory import pair
class Tools(v.Server):
    info = v.types.Implementation(name="x", version="1")
class Asks(v.Client):
    info = v.types.Implementation(name="x", version="1")
async def main():
    ours, theirs = pair()
    serving = asyncio.create_task(serve(theirs, Tools()))
    async with Asks().connected(ours) as client:
        await client.ping()
    await serving
asyncio.run(main())
HttpApp(Tools(), sessions=False)
print(sorted(name for name in sys.modules if "opentelemetry" in name or "telemetry" in name))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_uninstrument_stops_spans_and_context_propagation(seen: Seen) -> None:
    uninstrument()
    assert observation.current is None
    async with connected(ThenClient(), Then()) as connection:
        connection.client.options = Options(timeout=5)
        await connection.client.call_tool("echo")
    (params,) = connection.ours.params("tools/call")
    assert "_meta" not in params
    assert not seen.spans


@pytest.mark.parametrize("is_bridged", [False, True])
async def test_a_call_that_asks_is_measured_once_with_a_span_for_each_round(seen: Seen, is_bridged: bool) -> None:
    class Asking(Now):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            said = [await ctx.ask(question, bool) for question in ("Sure?", "Really?")]
            return self.types.CallToolResult(content=[self.types.TextContent(text=str(said))], is_error=True)

    package = v2025_11_25 if is_bridged else v2026_07_28

    class Home(package.Client):  # type: ignore[misc, name-defined]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            return package.types.ElicitResult(action="accept", content={"answer": True})

    async with connected(Home(), Asking()) as connection:
        await connection.client.call_tool("echo")
    spans = [span for span in seen.spans if _called(span)]
    for side, kind in (("client", SpanKind.CLIENT), ("server", SpanKind.SERVER)):
        points = [dict(one.attributes) | {"count": one.count} for one in seen.points(f"mcp.{side}.operation.duration")]
        calls = [point for point in points if point["mcp.method.name"] == "tools/call"]
        assert [(point["count"], point["error.type"]) for point in calls] == [(1, "tool_error")]
        failed = [span.status.status_code is StatusCode.ERROR for span in spans if span.kind is kind]
        assert failed == ([True] if is_bridged else [False, False, True])
