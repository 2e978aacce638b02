"""Stateless `tools/call` over HTTP, 32 connections, side by side: ours, the official SDK's low-level server, bare ASGI.

The official SDK comes twice: as it is, and in a mode that only ever answers with JSON, and so cannot report progress.
With `--in-process` there are neither sockets nor uvicorn: what a call of the application costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from functools import partial
from typing import Any

from costs import memory, processor_time
from http_driver import SERVERS, ask, drive, message, post, serving
from http_server import app as ours
from peers.bare_asgi import app as bare
from rounds import in_turn, report

CONNECTIONS = 32
KINDS = {"JSON": "echo", "SSE": "report"}
"""Kind of answer -> the tool that gives it."""

COLUMNS = {"calls/s": 0, "processor us/call": 0, "MiB": 1}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--in-process", action="store_true", help="processor time of a call, without sockets")
    arguments = parser.parse_args()
    if arguments.in_process:
        apps = {"ours": ours(), "bare ASGI": bare}
        peers = {name: partial(in_process, app, arguments.calls) for name, app in apps.items()}
        report(in_turn(arguments.rounds, peers), {f"{kind}, us/call": 1 for kind in KINDS})
        return
    for kind in KINDS:
        servers = [name for name in SERVERS if kind == "JSON" or "only" not in name]
        print(f"{kind}, {CONNECTIONS} connections")
        peers = {name: partial(measure, name, kind, arguments.calls) for name in servers}
        report(in_turn(arguments.rounds, peers), COLUMNS)


def measure(name: str, kind: str, calls: int) -> list[float]:
    """Measure one round of one server: what `COLUMNS` says."""
    with serving(name) as (pid, port):
        requests = [
            post(port, i, "tools/call", KINDS[kind], arguments={"text": f"hello {i}"}) for i in range(CONNECTIONS)
        ]
        check(kind, ask(port, requests[7]))
        drive(port, requests, 10 * CONNECTIONS)  # warm
        before = processor_time(pid)
        seconds = drive(port, requests, calls)
        return [calls / seconds, (processor_time(pid) - before) / calls * 1e6, memory(pid)]


def check(kind: str, response: str) -> None:
    """Fail unless a response is what it should be."""
    head, _, body = response.partition("\r\n\r\n")
    assert f"content-type: {'application/json' if kind == 'JSON' else 'text/event-stream'}" in head.lower(), response
    said = [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith(("{", "data: "))]
    assert said[-1]["result"]["content"] == [{"type": "text", "text": "hello 7"}], response
    assert [one.get("method") for one in said[:-1]] == ["notifications/progress"] * (kind == "SSE"), response


def in_process(app: Any, calls: int) -> list[float]:
    """Return the microseconds of processor time for a call of an application, for each of `KINDS`."""

    async def say(scope: dict[str, Any], body: bytes) -> str:
        unread = [{"type": "http.request", "body": body}]
        parts: list[bytes] = []

        async def receive() -> Any:
            return unread.pop() if unread else await asyncio.Event().wait()

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                parts.extend(b"%b: %b\r\n" % header for header in event["headers"])
                parts.append(b"\r\n")
            else:
                parts.append(event["body"])

        await app(scope, receive, send)
        return b"".join(parts).decode()

    async def repeat() -> list[float]:
        found: list[float] = []
        for kind, tool in KINDS.items():
            headers, body = message(7, "tools/call", tool, arguments={"text": "hello 7"})
            raw = [(key.lower().encode(), value.encode()) for key, value in {"Host": "localhost", **headers}.items()]
            scope = {"type": "http", "method": "POST", "path": "/mcp", "root_path": "", "headers": raw}
            check(kind, "\r\n" + await say(scope, body))
            begin = time.process_time()
            for _ in range(calls):
                await say(scope, body)
            found.append((time.process_time() - begin) / calls * 1e6)
        return found

    return asyncio.run(repeat())


if __name__ == "__main__":
    main()
