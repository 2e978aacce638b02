"""Stateless `tools/call` over HTTP, 32 connections, side by side: ours, the official SDK's low-level server, bare ASGI.

The official SDK comes twice: as it is, and in a mode that only ever answers with JSON, and so cannot report progress.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass, field

from http_driver import PARSER, SERVERS, ask, drive, memory, post, processor_time, serving

CONNECTIONS = 32
KINDS = {"JSON": "echo", "SSE": "report"}
"""Kind of answer -> the tool that gives it."""


@dataclass
class Figures:
    """What was measured of one server and one kind of answer, a value for each round."""

    rates: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000)
    arguments = parser.parse_args()
    print(f"{CONNECTIONS} connections, {PARSER} of uvicorn")
    for kind in KINDS:
        found = {name: Figures() for name in SERVERS if kind == "JSON" or "only" not in name}
        for _ in range(arguments.rounds):
            for name, figures in found.items():
                measure(name, kind, arguments.calls, figures)
        report(kind, found)


def measure(name: str, kind: str, calls: int, figures: Figures) -> None:
    """One round of one server."""
    with serving(name) as (pid, port):
        requests = [
            post(port, i, "tools/call", KINDS[kind], arguments={"text": f"hello {i}"}) for i in range(CONNECTIONS)
        ]
        check(kind, ask(port, requests[7]))
        drive(port, requests, 10 * CONNECTIONS)  # warm
        before = processor_time(pid)
        figures.rates.append(calls / drive(port, requests, calls))
        figures.costs.append((processor_time(pid) - before) / calls * 1e6)
        figures.memory.append(memory(pid))


def check(kind: str, response: str) -> None:
    """Fails unless a response is what it should be."""
    head, _, body = response.partition("\r\n\r\n")
    assert f"content-type: {'application/json' if kind == 'JSON' else 'text/event-stream'}" in head.lower(), response
    said = [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith(("{", "data: "))]
    assert said[-1]["result"]["content"] == [{"type": "text", "text": "hello 7"}], response
    assert [message.get("method") for message in said[:-1]] == ["notifications/progress"] * (kind == "SSE"), response


def report(kind: str, found: dict[str, Figures]) -> None:
    """Prints the medians of one kind of answer."""
    print(f"{kind:14} {'calls/s':>9} {'processor us/call':>18} {'MiB':>7}")
    medians = {name: [statistics.median(one) for one in vars(figures).values()] for name, figures in found.items()}
    for name, (rate, cost, size) in medians.items():
        print(f"{name:14} {rate:9.0f} {cost:18.0f} {size:7.1f}")
    for other, theirs in medians.items():
        rate, cost, size = (a / b for a, b in zip(medians["ours"], theirs, strict=True))
        if other != "ours":
            print(f"ours / {other:14}: {rate:.2f}x calls/s  {cost:.2f}x processor  {size:.2f}x memory")


if __name__ == "__main__":
    main()
