"""Measure what sharing sessions costs.

Calls and events with memory and with Redis, one worker and two; a change told to many.

All on one machine, with a Redis of its own: `redis-server` must be installed. Where clients, workers and Redis share
two cores, more workers are no faster; the processor time says what a call costs in all of them together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from costs import processor_time
from http_driver import drive
from ports import free_port, wait_for
from redis import Redis
from rounds import in_turn, report

SERVER = Path(__file__).parents[1] / "examples" / "cluster_server.py"
CONNECTIONS = 32
EVENTS = 200
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--listeners", type=int, default=1000)
    given = parser.parse_args()
    if shutil.which("redis-server") is None:
        sys.exit("this needs redis-server")
    needed = 4 * given.listeners + 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    print(f"stateful tools/list and events of tools/call, {CONNECTIONS} connections")
    kinds = {"memory": (1, False), "Redis": (1, True), "Redis, 2 workers": (2, True)}
    peers = {name: partial(calls, *kind, given.calls) for name, kind in kinds.items()}
    columns = {"calls/s": 0, "processor us/call": 0, "events/s": 0, "processor us/event": 0}
    report(in_turn(given.rounds, peers), columns)
    print(f"{given.listeners} standing streams on two workers, told of a change")
    told = {"Redis, 2 workers": partial(change, given.listeners)}
    report(in_turn(given.rounds, told), {"first, ms": 0, "last, ms": 0, "Redis, bytes/session": 0})


@contextmanager
def serving(count: int, shared: bool) -> Generator[tuple[list[int], list[int], Any]]:
    """Run workers; give their ports, the processes that work for them, and what asks Redis."""
    with ExitStack() as stack:
        pids: list[int] = []
        client: Any = None
        options: list[str] = []
        if shared:
            place = Path(stack.enter_context(TemporaryDirectory())) / "redis"
            command = [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                str(place),
                "--save",
                "",
                "--dir",
                str(place.parent),
            ]
            redis = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(redis.kill)
            while not place.exists():
                time.sleep(0.02)
            client = stack.enter_context(Redis(unix_socket_path=str(place)))
            options = ["--redis", f"unix://{place}"]
            pids.append(redis.pid)
        ports = [free_port() for _ in range(count)]
        for port in ports:
            command = [sys.executable, *([] if shared else ["-c", _IN_MEMORY]), *([str(SERVER)] if shared else [])]
            worker = subprocess.Popen([*command, "--port", str(port), *options], stderr=subprocess.DEVNULL)
            stack.enter_context(worker)
            stack.callback(worker.kill)
            pids.append(worker.pid)
        for port in ports:
            wait_for(port)
        yield ports, pids, client


_IN_MEMORY = f"""
import runpy, sys
import mcp_bindgen.cluster.session_registry as module
module.RedisStore = lambda url: None
sys.argv[0] = {str(SERVER)!r}
runpy.run_path({str(SERVER)!r}, run_name="__main__")
"""
"""The same server with sessions in memory."""


def begin(port: int) -> str:
    """Return a new session."""
    info = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    head, _ = ask(port, {"id": 1, "method": "initialize", "params": params})
    found = next(line for line in head.splitlines() if line.lower().startswith("mcp-session-id:"))
    session = found.partition(":")[2].strip()
    ask(port, {"method": "notifications/initialized"}, session)
    return session


def ask(port: int, message: dict[str, Any], session: str | None = None) -> tuple[str, str]:
    """Return the head and the body of the response to a message."""
    return asyncio.run(_ask(port, written(message, session)))


async def _ask(port: int, request: bytes) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = [line for line in head.splitlines() if line.lower().startswith("content-length:")]
    if length:
        body = await reader.readexactly(int(length[0].partition(":")[2]))
    else:
        body = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    return head, body.decode()


def written(message: dict[str, Any], session: str | None, method: str = "POST", **headers: str) -> bytes:
    """Return a request as it is written to a socket."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode() if message else b""
    named = {**HEADERS, **headers, "Content-Length": str(len(body))} | ({"Mcp-Session-Id": session} if session else {})
    head = ["Host: 127.0.0.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([f"{method} /mcp HTTP/1.1", *head, "", ""]).encode() + body


def calls(count: int, shared: bool, total: int) -> list[float]:
    """Measure calls that are answered at once, and the events of calls that go on for longer."""
    with serving(count, shared) as (ports, pids, _):
        share = CONNECTIONS // count
        sessions = {port: [begin(ports[0]) for _ in range(share)] for port in ports}
        asked = {
            port: [written({"id": number, "method": "tools/list"}, one) for number, one in enumerate(mine)]
            for port, mine in sessions.items()
        }
        for port in ports:
            drive(port, asked[port], 10 * share)
        before = used(pids)
        seconds = together([partial(drive, port, asked[port], total // count) for port in ports])
        costs = (used(pids) - before) / total * 1e6
        counting = {"name": "count", "arguments": {"to": EVENTS, "delay_ms": 0}, "_meta": {"progressToken": 1}}
        before = used(pids)
        begun = time.perf_counter()
        asyncio.run(_events(sessions, {"id": 7, "method": "tools/call", "params": counting}))
        spent = time.perf_counter() - begun
        events = EVENTS * CONNECTIONS
        return [total / seconds, costs, events / spent, (used(pids) - before) / events * 1e6]


async def _events(sessions: dict[int, list[str]], call: dict[str, Any]) -> None:
    responses = [_ask(port, written(call, one)) for port, mine in sessions.items() for one in mine]
    for _, body in await asyncio.gather(*responses):
        assert body.count("notifications/progress") == EVENTS


def used(pids: Sequence[int]) -> float:
    """Return the processor time of processes, in seconds."""
    return sum(processor_time(pid) for pid in pids)


def together(work: Sequence[Any]) -> float:
    """Return the seconds for all, each in a process of its own."""
    from concurrent.futures import ThreadPoolExecutor

    begun = time.perf_counter()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: one(), work))
    return time.perf_counter() - begun


def change(count: int) -> list[float]:
    """Measure how soon clients on two workers hear of a change, and what a session takes of Redis."""
    with serving(2, True) as (ports, _, redis):
        before = redis.info("memory")["used_memory"]
        sessions = [begin(ports[number % 2]) for number in range(count)]
        size = (redis.info("memory")["used_memory"] - before) / count
        return [*asyncio.run(_change(ports, sessions)), size]


async def _change(ports: list[int], sessions: list[str]) -> list[float]:
    follow = {"id": 2, "method": "resources/subscribe", "params": {"uri": "note://1"}}
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for number, session in enumerate(sessions):
        await _ask(ports[number % 2], written(follow, session))
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[(number + 1) % 2])  # any worker will do
        writer.write(written({}, session, "GET"))
        await reader.readuntil(b"\r\n\r\n")
        streams.append((reader, writer))
    await asyncio.sleep(1)
    heard: list[float] = []

    async def hear(reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"resources/updated")
        heard.append(time.perf_counter())

    listening = [asyncio.create_task(hear(reader)) for reader, _ in streams]
    params = {"name": "announce", "arguments": {"uri": "note://1"}}
    begun = time.perf_counter()
    await _ask(ports[0], written({"id": 3, "method": "tools/call", "params": params}, sessions[0]))
    await asyncio.gather(*listening)
    for _, writer in streams:
        writer.close()
    return [(min(heard) - begun) * 1000, (max(heard) - begun) * 1000]


if __name__ == "__main__":
    main()
