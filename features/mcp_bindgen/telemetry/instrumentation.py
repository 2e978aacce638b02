"""Trace and measure requests, by OpenTelemetry's conventions for MCP ("Semantic conventions for MCP", in development).

A span for each request, on both sides, and one for each notification that is handled; they are one trace, because
requests carry its context in their `_meta` (MCP 2026-07-28, "_meta"; W3C Trace Context and Baggage). No argument, no
result, no text of an error, no token and no session id, which is a secret, gets into an attribute.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, SpanKind, StatusCode, TracerProvider
from pydantic import BaseModel
from pydantic_core import from_json

from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.events import Notified, Requested
from mcp_bindgen.runtime.protocol.methods import CALL_TOOL, GET_PROMPT, Method
from mcp_bindgen.runtime.protocol.observation import observe
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.transitions import Role

NAME = "mcp_bindgen"
"""The instrumentation scope of spans and metrics."""

_TARGETS = {CALL_TOOL: "gen_ai.tool.name", GET_PROMPT: "gen_ai.prompt.name"}
_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # seconds, as the conventions say
_MOST_NAMES = 1000  # names of tools and prompts that metrics and names of spans tell apart
_LONGEST = 128  # characters of a name, or of an id, of somebody else

_Attributes = dict[str, str]


def instrument(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    trust: bool = True,
    resource_uris: bool = False,
) -> None:
    """Trace and measure all clients and servers of this process from now on.

    Args:
        tracer_provider: Makes spans; by default OpenTelemetry's global one.
        meter_provider: Makes metrics; by default OpenTelemetry's global one.
        trust: Whether a request that carries a trace belongs to that, so that who sends it decides if it is sampled.
            Where clients are strangers, `False` only links to it, and drops their baggage.
        resource_uris: Whether spans tell the URIs of resources, which may hold what is nobody else's business.
    """
    observe(_Telemetry(tracer_provider, meter_provider, trust, resource_uris))


def uninstrument() -> None:
    """Trace and measure nothing any longer."""
    observe(None)


class _Telemetry:
    """The observer. See `instrument`."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        trust: bool,
        resource_uris: bool,
    ) -> None:
        self.tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        self.trust, self.resource_uris = trust, resource_uris
        self.names: set[str] = set()
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)

        def histogram(name: str, description: str) -> metrics.Histogram:
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_BOUNDS)

        sides: tuple[Role, Role] = ("client", "server")
        self.operations = {
            side: histogram(f"mcp.{side}.operation.duration", f"Duration of requests and notifications, at the {seen}.")
            for side, seen in zip(sides, ("sender", "receiver"), strict=True)
        }
        self.sessions = {
            side: histogram(f"mcp.{side}.session.duration", f"Duration of sessions and connections, at the {side}.")
            for side in sides
        }
        self.active = meter.create_up_down_counter(
            "mcp_bindgen.active_requests", "{request}", "Requests and notifications that are being handled."
        )
        self.open = meter.create_up_down_counter(
            "mcp_bindgen.open_sessions", "{session}", "Sessions and connections that are open."
        )
        self.refusals = meter.create_counter(
            "mcp_bindgen.refused_requests", "{request}", "Requests refused because too much was going on."
        )

    @contextmanager
    def handling(self, role: Role, link: Any, event: Requested | Notified) -> Generator[_Operation]:
        """Trace and measure a message while it is handled."""
        method, revision = event.route.method, event.dispatcher.revision
        operation = _Operation(self, "server", link, revision, method, event.params)
        if isinstance(event, Requested):
            operation.span_only["jsonrpc.request.id"] = str(event.id)[:_LONGEST]
        active = {"mcp.method.name": method.name}
        self.active.add(1, active)
        try:
            with operation.traced(SpanKind.SERVER, *self._origin(event.params, revision)):
                yield operation
        finally:
            self.active.add(-1, active)

    def _origin(self, params: Any, revision: Revision) -> tuple[Context | None, Sequence[Link]]:
        """Return the context that a request carries, as the parent of its span, and what else it has to do with."""
        carrier = _carried(params, revision.trace_context)
        if not carrier:
            return None, ()
        theirs = trace.get_current_span(propagate.extract(carrier, Context())).get_span_context()
        ours = trace.get_current_span().get_span_context()
        if not self.trust:
            return None, [Link(theirs)] if theirs.is_valid else ()
        links = [Link(ours)] if ours.is_valid and theirs.is_valid else ()
        return propagate.extract(carrier, get_current()), links

    @contextmanager
    def asking(self, role: Role, link: Any, revision: Revision, method: Method, params: Any) -> Generator[_Operation]:
        """Trace and measure a request of ours, which carries the context of its span."""
        operation = _Operation(self, "client", link, revision, method, params)
        with operation.traced(SpanKind.CLIENT):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            operation.meta = {key: carrier[key] for key in revision.trace_context if key in carrier}
            yield operation

    @contextmanager
    def connected(self, role: Role, link: Any) -> Generator[None]:
        """Measure a connection, or a session, while it lasts."""
        begun, side = time.perf_counter(), {"mcp_bindgen.role": role, **_network(link)}
        self.open.add(1, side)
        try:
            yield
        finally:
            self.open.add(-1, side)
            dispatcher = link.peer.dispatcher
            agreed = {"mcp.protocol.version": dispatcher.revision.name, **_network(link)}
            self.sessions[role].record(time.perf_counter() - begun, agreed)

    def refused(self, reason: str) -> None:
        """Count a refusal."""
        self.refusals.add(1, {"mcp_bindgen.reason": reason})


class _Operation:
    """A request or notification, at one end.

    Attributes:
        meta: What a request carries of its trace.
        span_only: Attributes that are no good for metrics: there are too many values.
    """

    def __init__(
        self, telemetry: _Telemetry, side: Role, link: Any, revision: Revision, method: Method, params: Any
    ) -> None:
        self.meta: Mapping[str, Any] = {}
        self.span_only: _Attributes = {}
        self._telemetry, self._side, self._method = telemetry, side, method.name
        self._attributes: _Attributes = {
            "mcp.method.name": method.name,
            "mcp.protocol.version": revision.name,
            **_network(link),
        }
        self._key = _TARGETS.get(method.name)
        self._target: str | None = None
        if method.name == CALL_TOOL:
            self._attributes["gen_ai.operation.name"] = "execute_tool"
        said = getattr(params, "params", params)
        if self._key is not None:
            self._target = str(getattr(said, "name", ""))[:_LONGEST]
            self.span_only[self._key] = self._target
        elif telemetry.resource_uris and isinstance(uri := getattr(said, "uri", None), str):
            self.span_only["mcp.resource.uri"] = uri[:1024]
        self._error: str | None = None

    @contextmanager
    def traced(self, kind: SpanKind, parent: Context | None = None, links: Sequence[Link] = ()) -> Generator[None]:
        """Trace and measure what happens in a block."""
        names, begun = self._telemetry.names, time.perf_counter()
        span = self._telemetry.tracer.start_span(
            f"{self._method} {self._target}" if self._target in names else self._method,
            parent,
            kind,
            {**self._attributes, **self.span_only},
            links,
        )
        token = attach(trace.set_span_in_context(span, parent))
        try:
            yield
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            detach(token)
            if self._target is not None and self._error is None and len(names) < _MOST_NAMES:
                names.add(self._target)
            if self._key is not None and self._target in names:
                self._attributes[self._key] = self._target
                span.update_name(f"{self._method} {self._target}")
            if self._error is not None:
                span.set_attributes({name: self._attributes[name] for name in _ERRORS if name in self._attributes})
                span.set_status(StatusCode.ERROR)
            span.end()
            self._telemetry.operations[self._side].record(time.perf_counter() - begun, self._attributes)

    def answered(self, answer: Any) -> None:
        """Take note of an answer: that of a tool may say that it failed."""
        if self._method == CALL_TOOL and _is_error(answer):
            self._note("tool_error")

    def finished(self, error: ProtocolError | None) -> None:
        """Take note that a message is handled."""
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        match error:
            case ProtocolError():
                code = str(error.code) if error.code in _CODES else _OTHER
                self._note(code)
                self._attributes["rpc.response.status_code"] = code
            case RequestTimeout():
                self._note("timeout")
            case asyncio.CancelledError():
                self._note("cancelled")
            case _:
                self._note(type(error).__qualname__)

    def _note(self, kind: str) -> None:
        self._error = self._attributes["error.type"] = kind


_ERRORS = ("error.type", "rpc.response.status_code")
_CODES = range(-32768, -31999)
"""The codes that JSON-RPC reserves: others are as many as somebody else makes up (JSON-RPC 2.0, "Error object")."""
_OTHER = "_OTHER"  # as the conventions for `error.type` say


def _network(link: Any) -> _Attributes:
    """Return by what messages travel, as far as the transport says it."""
    network: str | None = link.origin.network
    if network is None:
        return {}
    return {"network.transport": network} | ({"network.protocol.name": "http"} if network == "tcp" else {})


def _carried(params: Any, keys: Sequence[str]) -> dict[str, str]:
    """Return what the `_meta` of a message carries of a trace."""
    meta: Any = getattr(params, "meta", None)
    if meta is None and isinstance(params, BaseModel):
        meta = (params.model_extra or {}).get("_meta")  # revisions that do not name it let it pass
    found: Mapping[str, Any] = meta if is_object(meta) else getattr(meta, "model_extra", None) or {}
    return {key: value for key in keys if isinstance(value := found.get(key), str)}


def _is_error(answer: Any) -> bool:
    """Tell whether the answer of a tool, in whatever form, says that it failed."""
    if isinstance(answer, jsonrpc.Written):
        return answer.find(b'"isError"') >= 0 and _is_error(from_json(answer))
    return (answer.get("isError") if is_object(answer) else getattr(answer, "is_error", None)) is True
