"""An `App` beside a server class with the same tool: start, modules, memory and the cost of a call, in one run.

Times are processor times, and the servers take turns, so that the load of the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import product
from typing import Any

import anyio
from calls import application
from http_driver import message
from stdio import INITIALIZE, INITIALIZED, line

from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.transports.memory import pair

SERVERS = {
    "class": """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types

class Weather(Server):
    info = types.Implementation(name="weather", version="1.0.0")

    async def list_tools(self, params, ctx):
        schema = types.ToolInputSchema(properties={"city": {"type": "string"}, "days": {"type": "integer"}})
        return {"tools": [types.Tool(name="forecast", input_schema=schema).model_dump()]}

    async def call_tool(self, params, ctx):
        days = {"result": ["sun"] * params.arguments.get("days", 3)}
        content = [types.TextContent(text=json.dumps(days))]
        return types.CallToolResult(content=content, structured_content=days)

served = Weather()
""",
    "App": """
from mcp_bindgen.app import App, Context, run

served = App("weather", version="1.0.0")

@served.tool
async def forecast(city: str, ctx: Context, days: int = 3) -> list[str]:
    \"\"\"Tell the sky over a city, day by day.\"\"\"
    return ["sun"] * days
""",
}
_BEGIN = "import atexit, json, sys, time\n"
_END = """
def report():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    own = [name for name in sys.modules if name.startswith("mcp_bindgen.") and ".v2" not in name]
    print(json.dumps([time.process_time(), int(status["VmHWM"].split()[0]) / 1024, len(own)]), file=sys.stderr)

atexit.register(report)
run(served)
"""
LIST = line(1, "tools/list")
ARGUMENTS = {"city": "Oslo"}


def ended(name: str, *requests: bytes) -> list[float]:
    """Send requests to a process over standard input, one after the other.

    Returns:
        Processor seconds, MiB and modules of the process.
    """
    command = [sys.executable, "-c", _BEGIN + SERVERS[name] + _END]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in (INITIALIZE, INITIALIZED, *requests):
            process.stdin.write(request)
            process.stdin.flush()
            assert request == INITIALIZED or b'"result"' in process.stdout.readline()
        _, said = process.communicate()
    found: list[float] = json.loads(said.splitlines()[-1])
    return found


async def microseconds(call: Callable[[int], Awaitable[object]], calls: int) -> float:
    """Return the processor time of a call in microseconds."""
    for number in range(calls // 4):
        await call(number + 1)
    begin = time.process_time()
    for number in range(calls):
        await call(number + calls)
    return (time.process_time() - begin) / calls * 1e6


async def in_memory(served: Any, calls: int) -> float:
    """Return the processor time of a call over the transport in memory."""
    near, far = pair()
    found = 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, far, served)
        await near.send([INITIALIZE])
        await near.receive()
        await near.send([INITIALIZED])

        async def call(number: int) -> None:
            await near.send([line(number, "tools/call", name="forecast", arguments=ARGUMENTS)])
            (answer,) = await near.receive()
            assert isinstance(answer, bytes)
            assert b"structuredContent" in answer

        found = await microseconds(call, calls)
        tasks.cancel_scope.cancel()
    return found


async def over_http(served: Any, calls: int, *, session: bool) -> float:
    """Return the processor time of a call to an ASGI application."""
    async with application(served) as post:
        if not session:
            return await microseconds(
                lambda number: post(*message(number, "tools/call", "forecast", arguments=ARGUMENTS)), calls
            )
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        answered = await post(headers, INITIALIZE)
        headers |= {"Mcp-Session-Id": answered[b"mcp-session-id"].decode(), "MCP-Protocol-Version": "2025-11-25"}
        await post(headers, INITIALIZED)
        return await microseconds(
            lambda number: post(headers, line(number, "tools/call", name="forecast", arguments=ARGUMENTS)), calls
        )


def made(name: str, revision: str) -> Any:
    """Return a new server of a revision in this process."""
    scope: dict[str, Any] = {"json": json}
    exec(SERVERS[name].replace("v2025_11_25", revision), scope)
    return scope["served"]


def main() -> None:
    """Print one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    rounds, calls = options.rounds, options.calls
    old, new = "v2025_11_25", "v2026_07_28"
    figures: dict[str, dict[str, list[float]]] = {}

    def note(figure: str, name: str, value: float) -> None:
        figures.setdefault(figure, {}).setdefault(name, []).append(value)

    requests = [line(number + 1, "tools/call", name="forecast", arguments=ARGUMENTS) for number in range(calls)]
    for _, name in product(range(rounds), SERVERS):
        seconds, memory, modules = ended(name, LIST)
        note("start, ms", name, seconds * 1000)
        note("modules", name, modules)
        note("peak MiB", name, memory)
        note("stdio, us/call", name, (ended(name, *requests)[0] - seconds) / calls * 1e6)
        note("memory, us/call", name, anyio.run(in_memory, made(name, old), calls))
        note("HTTP session, us/call", name, anyio.run(partial(over_http, session=True), made(name, old), calls))
        note("HTTP stateless, us/call", name, anyio.run(partial(over_http, session=False), made(name, new), calls))
    print(f"{'':24} {'class':>9} {'App':>9} {'ratio':>7}")
    for figure, found in figures.items():
        ours, theirs = (statistics.median(found[name]) for name in SERVERS)
        print(f"{figure:24} {ours:9.1f} {theirs:9.1f} {theirs / ours:6.2f}x")


if __name__ == "__main__":
    main()
