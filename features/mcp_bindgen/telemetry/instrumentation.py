"""Traces and metrics by OpenTelemetry's conventions for MCP ("Semantic conventions for MCP", in development).

A span for each request on both sides, and for each handled notification. They form one trace, because requests carry
its context in their `_meta` (MCP 2026-07-28, "_meta"; W3C Trace Context and Baggage). Attributes never contain
arguments, results, texts of errors, tokens or session ids (which are secrets).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import Link as SpanLink
from opentelemetry.trace import SpanKind, StatusCode, Tracer, TracerProvider
from pydantic import BaseModel
from pydantic_core import from_json

from mcp_bindgen.runtime.model.base import optional
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.events import Notified, Requested
from mcp_bindgen.runtime.protocol.methods import CALL_TOOL, GET_PROMPT, Method, Role
from mcp_bindgen.runtime.protocol.observation import observe
from mcp_bindgen.runtime.protocol.request_scope import Link
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.session import Session

NAME = "mcp_bindgen"
"""Instrumentation scope of spans and metrics."""

_TARGETS = {CALL_TOOL: "gen_ai.tool.name", GET_PROMPT: "gen_ai.prompt.name"}
_BUCKETS_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # of the conventions
_RESERVED_CODES = range(-32768, -31999)  # JSON-RPC 2.0, "Error object"; other codes would be unlimited attribute values
_MAX_NAMES = 1000  # names of tools and prompts in metrics and in names of spans
_MAX_NAME_CHARACTERS = 128
_MAX_URI_CHARACTERS = 1024


def instrument(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    trust: bool = True,
    resource_uris: bool = False,
) -> None:
    """Trace and measure all clients and servers of this process from now on.

    Args:
        tracer_provider: Provider of the tracer; by default OpenTelemetry's global one.
        meter_provider: Provider of the meter; by default OpenTelemetry's global one.
        trust: True if spans continue the trace of a request, so that the client decides about sampling. False only
            links to that trace and drops its baggage; use it for unknown clients.
        resource_uris: True if spans contain the URIs of resources, which may be confidential.
    """
    tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
    observe(_Telemetry(tracer, metrics.get_meter(NAME, meter_provider=meter_provider), trust, resource_uris))


def uninstrument() -> None:
    """Stop tracing and measuring."""
    observe(None)


class _Telemetry:
    """Observer of the runtime: see `instrument`."""

    def __init__(self, tracer: Tracer, meter: Meter, trust: bool, resource_uris: bool) -> None:
        self.tracer, self.trust, self.resource_uris = tracer, trust, resource_uris
        self.names: set[str] = set()
        self.operations = _durations(meter, "operation", "Duration of requests and notifications, at the {}.")
        self.sessions = _durations(meter, "session", "Duration of sessions and connections, at the {}.")
        handled = "Requests and notifications that are being handled."
        self.active = meter.create_up_down_counter("mcp_bindgen.active_requests", "{request}", handled)
        connected = "Sessions and connections that are open."
        self.open = meter.create_up_down_counter("mcp_bindgen.open_sessions", "{session}", connected)
        refused = "Requests refused because of a limit."
        self.refusals = meter.create_counter("mcp_bindgen.refused_requests", "{request}", refused)

    @contextmanager
    def handling(self, role: Role, link: Link, event: Requested | Notified) -> Generator[_Operation]:
        """Trace and measure a message while it is handled."""
        method, revision = event.route.method, event.dispatcher.revision
        operation = _Operation(self, "server", link, revision, method, event.params)
        if isinstance(event, Requested):
            operation.span_only["jsonrpc.request.id"] = str(event.id)[:_MAX_NAME_CHARACTERS]
        active = {"mcp.method.name": method.name}
        self.active.add(1, active)
        try:
            holder = event.params if optional(event, "meta") is None else event
            with operation.traced(SpanKind.SERVER, *self._parent(holder, revision)):
                yield operation
        finally:
            self.active.add(-1, active)

    def _parent(self, holder: object, revision: Revision) -> tuple[Context | None, Sequence[SpanLink]]:
        """Return the parent of the span of a request, from the trace context in its `_meta`, and related spans."""
        carrier = _trace_context(holder, revision.trace_context)
        if not carrier:
            return None, ()
        remote = trace.get_current_span(propagate.extract(carrier, Context())).get_span_context()
        local = trace.get_current_span().get_span_context()
        if not self.trust:
            return None, [SpanLink(remote)] if remote.is_valid else ()
        links = [SpanLink(local)] if local.is_valid and remote.is_valid else ()
        return propagate.extract(carrier, get_current()), links

    @contextmanager
    def asking(
        self, role: Role, link: Link, revision: Revision, method: Method, params: object
    ) -> Generator[_Operation]:
        """Trace and measure a request of this process; the request carries the context of its span."""
        operation = _Operation(self, "client", link, revision, method, params)
        with operation.traced(SpanKind.CLIENT):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            operation.meta = {key: carrier[key] for key in revision.trace_context if key in carrier}
            yield operation

    @contextmanager
    def connected(self, role: Role, link: Session) -> Generator[None]:
        """Measure a connection or session."""
        begun, attributes = time.perf_counter(), {"mcp_bindgen.role": role, **_network(link)}
        self.open.add(1, attributes)
        try:
            yield
        finally:
            self.open.add(-1, attributes)
            agreed = {"mcp.protocol.version": link.connection.dispatcher.revision.name, **_network(link)}
            self.sessions[role].record(time.perf_counter() - begun, agreed)

    def refused(self, reason: str) -> None:
        """Count a refusal."""
        self.refusals.add(1, {"mcp_bindgen.reason": reason})


class _Operation:
    """A request or notification on one side.

    Attributes:
        meta: Trace context for the `_meta` of the request.
        span_only: Attributes of the span that have too many values for metrics.
    """

    def __init__(
        self, telemetry: _Telemetry, side: Role, link: Link, revision: Revision, method: Method, params: Any
    ) -> None:
        self.meta: Mapping[str, Any] = {}
        self.span_only: dict[str, str] = {}
        self._telemetry, self._side, self._method = telemetry, side, method.name
        self._attributes = {"mcp.method.name": method.name, "mcp.protocol.version": revision.name, **_network(link)}
        self._errors: dict[str, str] = {}
        self._asks = False
        self._target_key = _TARGETS.get(method.name)
        self._target = ""
        if method.name == CALL_TOOL:
            self._attributes["gen_ai.operation.name"] = "execute_tool"
        if self._target_key is not None:
            self._target = str(optional(params, "name") or "")[:_MAX_NAME_CHARACTERS]
            self.span_only[self._target_key] = self._target
        elif telemetry.resource_uris and isinstance(uri := optional(params, "uri"), str):
            self.span_only["mcp.resource.uri"] = uri[:_MAX_URI_CHARACTERS]

    @contextmanager
    def traced(self, kind: SpanKind, parent: Context | None = None, links: Sequence[SpanLink] = ()) -> Generator[None]:
        """Trace and measure the block."""
        names, begun, named = self._telemetry.names, time.perf_counter(), f"{self._method} {self._target}"
        name = named if self._target in names else self._method
        attributes = {**self._attributes, **self.span_only}
        span = self._telemetry.tracer.start_span(name, parent, kind, attributes, links)
        token = attach(trace.set_span_in_context(span, parent))
        try:
            yield
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            detach(token)
            if self._target_key is not None and not self._errors and len(names) < _MAX_NAMES:
                names.add(self._target)
            if self._target_key is not None and self._target in names:
                self._attributes[self._target_key] = self._target
                span.update_name(named)
            if self._errors:
                span.set_attributes(self._errors)
                span.set_status(StatusCode.ERROR)
            span.end()
            duration = time.perf_counter() - begun
            if not self._asks:  # a call that asks is counted once, with its last round
                self._telemetry.operations[self._side].record(duration, {**self._attributes, **self._errors})

    def answered(self, answer: object) -> None:
        """Record the answer; the result of a tool may have `isError`, and that of a round asks for input."""
        if isinstance(answer, jsonrpc.Written):
            answer = from_json(answer) if max(map(answer.find, (b'"isError"', b'"input_required"'))) >= 0 else {}
        wire = answer if is_object(answer) else {}
        self._asks = wire.get("resultType", optional(answer, "result_type")) == "input_required"
        if self._method == CALL_TOOL and wire.get("isError", optional(answer, "is_error")) is True:
            self._errors["error.type"] = "tool_error"

    def finished(self, error: ProtocolError | None) -> None:
        """Record the error that answers the request, if there is one."""
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        match error:
            case ProtocolError():
                code = str(error.code) if error.code in _RESERVED_CODES else "_OTHER"  # of the conventions
                self._errors |= {"error.type": code, "rpc.response.status_code": code}
            case RequestTimeout():
                self._errors["error.type"] = "timeout"
            case asyncio.CancelledError():
                self._errors["error.type"] = "cancelled"
            case _:
                self._errors["error.type"] = type(error).__qualname__


def _durations(meter: Meter, kind: str, description: str) -> dict[str, Histogram]:
    """Return the histogram of durations for each side."""
    options: Mapping[str, Any] = {"unit": "s", "explicit_bucket_boundaries_advisory": _BUCKETS_SECONDS}
    return {
        side: meter.create_histogram(f"mcp.{side}.{kind}.duration", description=description.format(side), **options)
        for side in ("client", "server")
    }


def _network(link: Link) -> dict[str, str]:
    """Return attributes of the transport, as far as it is known."""
    network = link.origin.network
    if network is None:
        return {}
    return {"network.transport": network} | ({"network.protocol.name": "http"} if network == "tcp" else {})


def _trace_context(holder: object, keys: Sequence[str]) -> dict[str, str]:
    """Return the trace context in the `_meta` of a message, which its params hold or the message itself."""
    meta: object = optional(holder, "meta")
    if meta is None and isinstance(holder, BaseModel):
        meta = (holder.model_extra or {}).get("_meta")  # revisions without this field accept it as an extra one
    if isinstance(meta, BaseModel):
        meta = meta.model_extra
    return {key: value for key in keys if isinstance(value := meta.get(key), str)} if is_object(meta) else {}
