"""Measure what one process carries.

Calls of each kind a second, and what idle sessions and open streams take of its memory.

Clients of 2026-07-28, of 2025-11-25 with sessions, and of 2025-11-25 without (`run --http ... --no-sessions`), each
with 32 connections. With `--telemetry` OpenTelemetry's share of a call is measured instead, in process.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import socket
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from costs import memory, processor_time
from http_calls import in_process
from http_driver import ask, connect, drive, post, serving
from http_server import app
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor as Batches
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from rounds import in_turn, report

from mcp_bindgen.telemetry import instrument, uninstrument

CONNECTIONS = 32
OPEN = 900  # sessions; one process takes 1,000 unless it is told otherwise
REVISION = "2025-11-25"
SERVERS = {"stateless": "http_server.py", "sessions": "http_server.py", "no sessions": "http_server.py --no-sessions"}
COLUMNS = {"calls/s": 0, "processor us/call": 0}
MEMORY = {"MiB at rest": 1, "KiB a session": 1, "KiB a stream": 1}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--telemetry", action="store_true", help="what traces and metrics cost")
    arguments = parser.parse_args()
    if arguments.telemetry:
        telemetry(arguments.rounds, arguments.calls)
        return
    needed = 4 * OPEN + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    kinds = {name: partial(calls, name, arguments.calls) for name in SERVERS}
    report(in_turn(arguments.rounds, kinds), COLUMNS)
    held = [memory_of_sessions() for _ in range(arguments.rounds)]
    for column, found in zip(MEMORY, zip(*held, strict=True), strict=True):
        print(f"{column}: {statistics.median(found):.1f}")


def stateful(port: int, document: object, session: str | None, method: str = "POST") -> bytes:
    """Return a request of a stateful client as it is written to a socket."""
    body = b"" if document is None else json.dumps(document).encode()
    head = [
        f"{method} /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {REVISION}",
        *([f"Mcp-Session-Id: {session}"] if session else []),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def begin(port: int) -> str | None:
    """Do the handshake of a client; returns the id of its session, where there are sessions."""
    params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    found = re.search(r"mcp-session-id: (\S+)", ask(port, stateful(port, asked, None)), re.IGNORECASE)
    session = found[1] if found else None
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert ask(port, stateful(port, initialized, session)).startswith("HTTP/1.1 202")
    return session


def calls(kind: str, count: int) -> list[float]:
    """Measure one round of one kind of clients: what `COLUMNS` says."""
    with serving(SERVERS[kind]) as (pid, port):
        requests: list[bytes] = []
        for id_ in range(CONNECTIONS):
            if kind == "stateless":
                requests.append(post(port, id_, "tools/call", "echo", arguments={"text": f"hello {id_}"}))
            else:
                params = {"name": "echo", "arguments": {"text": f"hello {id_}"}}
                asked = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
                requests.append(stateful(port, asked, begin(port)))
        assert '"hello 7"' in ask(port, requests[7])
        drive(port, requests, 10 * CONNECTIONS)  # warm
        before = processor_time(pid)
        seconds = drive(port, requests, count)
        return [count / seconds, (processor_time(pid) - before) / count * 1e6]


def memory_of_sessions() -> list[float]:
    """Measure one round of `MEMORY`."""
    with serving(SERVERS["sessions"]) as (pid, port), ExitStack() as held:
        begin(port)
        at_rest = memory(pid)
        sessions = [begin(port) for _ in range(OPEN)]
        begun = memory(pid)
        for session in sessions:
            stream: socket.socket = held.enter_context(connect(port))
            stream.sendall(stateful(port, None, session, "GET"))
            assert stream.recv(4096).startswith(b"HTTP/1.1 200")
        return [at_rest, (begun - at_rest) * 1024 / OPEN, (memory(pid) - begun) * 1024 / OPEN]


class Nowhere(SpanExporter):
    """Drops what it is given."""

    def export(self, spans: object) -> SpanExportResult:
        """Drop spans."""
        return SpanExportResult.SUCCESS


def telemetry(rounds: int, count: int) -> None:
    """Print the microseconds of a call with and without traces and metrics."""
    application = app()
    exported = TracerProvider(shutdown_on_exit=False)
    exported.add_span_processor(Batches(Nowhere()))
    dropped = TracerProvider(ALWAYS_OFF, shutdown_on_exit=False)
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    ways: dict[str, Callable[[], object]] = {
        "every span": partial(instrument, tracer_provider=exported, meter_provider=meters),
        "no span is sampled": partial(instrument, tracer_provider=dropped, meter_provider=meters),
        "no SDK": instrument,
        "not used": uninstrument,
    }

    def measure(name: str) -> list[float]:
        ways[name]()
        return in_process(application, count)

    report(in_turn(rounds, {name: partial(measure, name) for name in ways}), {"JSON, us/call": 1, "SSE, us/call": 1})
    exported.shutdown()


if __name__ == "__main__":
    main()
