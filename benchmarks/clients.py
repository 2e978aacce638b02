"""Our client against the official SDK's, both driving the same bare server over stdio; and a tool result of 10 MiB."""

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client

SERVER = str(Path(__file__).parent / "peers" / "bare_loop.py")
LARGE = 10 * 1024 * 1024

Call = Callable[[str], Awaitable[Any]]
Connect = Callable[[Callable[[Call], Awaitable[None]]], Awaitable[None]]


async def ours(measure: Callable[[Call], Awaitable[None]]) -> None:
    """Our client."""
    async with Client.connect(stdio(sys.executable, SERVER)) as client:
        await measure(lambda text: client.call_tool("echo", {"text": text}))


async def official(measure: Callable[[Call], Awaitable[None]]) -> None:
    """The official SDK's client."""
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await measure(lambda text: session.call_tool("echo", {"text": text}))


def main() -> None:
    """Prints calls per second, one by one and 64 at once, and the seconds for 10 MiB there and back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=640)
    arguments = parser.parse_args()
    found: dict[str, list[list[float]]] = {"ours": [], "official SDK": []}
    for _ in range(arguments.rounds):
        for name, connect in (("ours", ours), ("official SDK", official)):
            found[name].append(anyio.run(once, connect, arguments.calls))
    print(f"{'client':14} {'one by one/s':>13} {'64 at once/s':>13} {'10 MiB s':>9}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, (single, many, large) in medians.items():
        print(f"{name:14} {single:13.0f} {many:13.0f} {large:9.2f}")
    ratios = [a / b for a, b in zip(medians["ours"], medians["official SDK"], strict=True)]
    print(f"ours / official: {ratios[0]:.1f}x  {ratios[1]:.1f}x  {ratios[2]:.2f}x")


async def once(connect: Connect, calls: int) -> list[float]:
    """One round of one client."""
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
