"""Measure the workload of the TM Dev Lab benchmark of MCP servers, version 2, from `initialize` to DELETE.

    python benchmarks/tm_benchmark.py [--fastmcp PYTHON] [--rounds 5] [--sessions 400] [--users 50]

Each user has one connection and repeats four sessions: one for each of the three tools, one for the list of tools.
A session is `initialize`, `notifications/initialized`, the call, and DELETE where the server gave a session id.
FastMCP is not among our dependencies: PYTHON is an interpreter that has it, redis, uvloop and httptools.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from costs import memory, processor_time
from ports import free_port, wait_for
from redis import Redis
from rounds import in_turn, report

ROOT = Path(__file__).parents[1]
COLUMNS = {"processor ms/session": 3, "p50 ms": 1, "p99 ms": 1, "peak MiB": 1}
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_SESSION = re.compile(rb"mcp-session-id: (\S+)", re.IGNORECASE)


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=400, help="times four sessions in each round")
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--fastmcp", metavar="PYTHON", help="an interpreter that has FastMCP")
    parser.add_argument("--only", metavar="WORD", default="", help="peers whose name has this word")
    chosen = parser.parse_args()
    peers = {
        "ours": (sys.executable, "main:web", "0"),
        "ours, sessions": (sys.executable, "main:web", "1"),
        "bare ASGI": (sys.executable, "bare:web", "0"),
        "official SDK": (sys.executable, "sdk:web", "0"),
        "SDK, sessions": (sys.executable, "sdk:web", "1"),
    }
    if chosen.fastmcp:
        peers["FastMCP"] = (chosen.fastmcp, "fast:web", "0")
        peers["FastMCP, sessions"] = (chosen.fastmcp, "fast:web", "1")
    with services() as environment:
        measures = {
            name: partial(measure, one, environment, chosen.users, chosen.sessions)
            for name, one in peers.items()
            if chosen.only in name
        }
        report(in_turn(chosen.rounds, measures), COLUMNS)


@contextmanager
def serving(command: Sequence[str], port: int, environment: dict[str, str]) -> Generator[int]:
    """Run a server in a process of its own; yields the process id."""
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield process.pid
        finally:
            process.kill()


def uvicorn(python: str, app: str, port: int) -> list[str]:
    """Return the command of an ASGI server."""
    options = ["--port", str(port), "--log-level", "critical", "--no-access-log", "--loop", "uvloop"]
    return [python, "-m", "uvicorn", app, *options, "--app-dir", str(ROOT / "examples/tm_benchmark")]


@contextmanager
def services() -> Generator[dict[str, str]]:
    """Run Redis, with its data, and the HTTP API; yields the environment of servers."""
    store, api = free_port(), free_port()
    command = ["redis-server", "--port", str(store), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    path = os.pathsep.join([str(ROOT / "benchmarks/tm"), str(ROOT / "examples/tm_benchmark")])
    with (
        tempfile.TemporaryDirectory() as folder,
        serving([*command, "--dir", folder, "--loglevel", "warning"], store, {}),
        serving(uvicorn(sys.executable, "catalog:web", api), api, {"PYTHONPATH": path}),
    ):
        fill(Redis(port=store))
        url = f"http://127.0.0.1:{api}"
        yield {"PYTHONPATH": path, "REDIS_URL": f"redis://127.0.0.1:{store}", "API_SERVICE_URL": url}


def fill(redis: Redis) -> None:
    """Store carts and histories of 1,000 users, and the popularity of 10,000 products."""
    pipe = redis.pipeline(transaction=False)
    for user in range(1000):
        items = [{"product_id": user * 7 + 1, "qty": 1 + user % 3}, {"product_id": user * 13 + 1, "qty": 1}]
        pipe.hset(f"bench:cart:user-{user:05d}", mapping={"items": json.dumps(items), "total": "12.50"})
        orders = [json.dumps({"order_id": f"ORD-{user:05d}-{n:02d}", "qty": 1, "price": 9.5}) for n in range(20)]
        pipe.rpush(f"bench:history:user-{user:05d}", *orders)
    pipe.zadd("bench:popular", {f"product:{n}": n % 997 for n in range(1, 10_001)})
    pipe.execute()


def measure(peer: tuple[str, str, str], environment: dict[str, str], users: int, sessions: int) -> list[float]:
    """Return the figures of `COLUMNS` for a server: interpreter, application and whether it has sessions."""
    python, app, with_sessions = peer
    port = free_port()
    with serving(uvicorn(python, app, port), port, {**environment, "SESSIONS": with_sessions}) as pid:
        asyncio.run(drive(port, users, users))
        before = processor_time(pid)
        times = sorted(asyncio.run(drive(port, users, sessions)))
        spent = processor_time(pid) - before
        return [
            1000 * spent / len(times),
            1000 * statistics.median(times),
            1000 * times[len(times) * 99 // 100],
            memory(pid, peak=True),
        ]


def calls(user: str) -> list[tuple[str, dict[str, object], bytes]]:
    """Return method, params and a text of the right answer of each of the four sessions."""
    items = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]
    wanted = {"category": "Electronics", "min_price": 50.0, "max_price": 500.0, "limit": 10}
    return [
        ("tools/call", {"name": "search_products", "arguments": wanted}, rb"\"total_found\": 2251"),
        ("tools/call", {"name": "get_user_cart", "arguments": {"user_id": user}}, rb"\"item_count\": 2"),
        ("tools/call", {"name": "checkout", "arguments": {"user_id": user, "items": items}}, b"confirmed"),
        ("tools/list", {}, b"get_user_cart"),
    ]


async def drive(port: int, users: int, sessions: int) -> list[float]:
    """Run four times `sessions` sessions; return the seconds of each, from `initialize` to the result."""
    return [
        one for some in await asyncio.gather(*(use(port, n, sessions // users) for n in range(users))) for one in some
    ]


async def use(port: int, user: int, count: int) -> list[float]:
    """Run the sessions of one user on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(method: str, document: object, session: bytes | None) -> tuple[bytes, bytes]:
        body = b"" if document is None else json.dumps(document).encode()
        head = [f"{method} /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
        head += ["Accept: application/json, text/event-stream", f"Content-Length: {len(body)}"]
        head += [f"Mcp-Session-Id: {session.decode()}"] if session else []
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer[9:10] != b"2":
            raise RuntimeError(f"unexpected answer: {answer.decode()}")
        length = _LENGTH.search(answer)
        if length is not None:
            return answer, await reader.readexactly(int(length[1]))
        parts = b""
        while b"transfer-encoding" in answer.lower() and (size := int(await reader.readline(), 16)):
            parts += await reader.readexactly(size)
            await reader.readexactly(2)
        if b"transfer-encoding" in answer.lower():
            await reader.readexactly(2)
        return answer, parts

    begin = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    times: list[float] = []
    for _ in range(count):
        for method, params, wanted in calls(f"user-{user:05d}"):
            started = time.perf_counter()
            head, _ = await ask("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}, None)
            found = _SESSION.search(head)
            session = found[1] if found else None
            await ask("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
            _, answer = await ask("POST", {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}, session)
            times.append(time.perf_counter() - started)
            if wanted not in answer:
                raise RuntimeError(f"wrong answer: {answer.decode()}")
            if session:
                await ask("DELETE", None, session)
    writer.close()
    return times


if __name__ == "__main__":
    main()
