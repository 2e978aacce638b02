"""Our client against the official SDK's, both driving the same bare server over stdio; and a tool result of 10 MiB."""

import argparse
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from rounds import in_turn, report

from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client

SERVER = str(Path(__file__).parent / "peers" / "bare_loop.py")
LARGE = 10 * 1024 * 1024

Call = Callable[[str], Awaitable[Any]]
Connect = Callable[[Callable[[Call], Awaitable[None]]], Awaitable[None]]


async def ours(measure: Callable[[Call], Awaitable[None]]) -> None:
    """Measure the calls of our client."""
    async with Client.connect(stdio(sys.executable, SERVER)) as client:
        await measure(lambda text: client.call_tool("echo", {"text": text}))


async def official(measure: Callable[[Call], Awaitable[None]]) -> None:
    """Measure the calls of the official SDK's client."""
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await measure(lambda text: session.call_tool("echo", {"text": text}))


def main() -> None:
    """Print calls per second, one by one and 64 at once, and the seconds for 10 MiB there and back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=640)
    arguments = parser.parse_args()
    clients = {"ours": ours, "official SDK": official}
    measured = {name: partial(anyio.run, partial(once, connect, arguments.calls)) for name, connect in clients.items()}
    report(in_turn(arguments.rounds, measured), {"one by one/s": 0, "64 at once/s": 0, "10 MiB s": 2})


async def once(connect: Connect, calls: int) -> list[float]:
    """Run one round of one client."""
    figures: list[float] = []

    async def measure(call: Call) -> None:
        await call("warm")
        begin = time.perf_counter()
        for _ in range(calls // 4):
            await call("hello")
        figures.append(calls / 4 / (time.perf_counter() - begin))

        async def several(count: int) -> None:
            for _ in range(count):
                await call("hello")

        begin = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(64):
                tasks.start_soon(several, calls // 64)
        figures.append(calls / (time.perf_counter() - begin))
        begin = time.perf_counter()
        await call("x" * LARGE)
        figures.append(time.perf_counter() - begin)

    await connect(measure)
    return figures


if __name__ == "__main__":
    main()
