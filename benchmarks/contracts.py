"""Measure the cost of a contract: generating code with ten times as many tools, a call beside a handwritten server."""

import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.contract.code.package import contract_files
from mcp_bindgen.contract.code.typed_client import client_files
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.ir import build
from mcp_bindgen.runtime import Server as AnyServer
from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.session.endpoint import all_servers
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.spec import Store
from mcp_bindgen.v2025_11_25 import Client, Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp

ROUNDS = 5
CALLS = 2000
FEW, MANY = 50, 500
PROTOCOL = build(Store().effective("2025-11-25"))


def document(count: int) -> dict[str, Any]:
    """Return a contract of so many tools, each with three arguments and a structured result."""
    text, number = {"type": "string", "description": "A text."}, {"type": "integer", "minimum": 0, "default": 3}
    taken = {
        "type": "object",
        "properties": {"city": text, "days": number, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"],
    }
    given = {"type": "object", "properties": {"city": text, "days": number}, "required": ["city"]}
    return {
        "tools": [
            {"name": f"tool-{index}", "inputSchema": taken, "outputSchema": given, "description": "Tells the weather."}
            for index in range(count)
        ]
    }


class Handwritten(Server):
    """The same tool without a contract: nothing is checked but what the protocol says."""

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        city = (params.arguments or {})["city"]
        return mcp.CallToolResult(content=[mcp.TextContent(text="{}")], structured_content={"city": city})


def contracted() -> list[AnyServer]:
    """Return the server of a contract with one tool."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in contract_files(contract_of(document(1)), [PROTOCOL], "weather", "contract.json").items():
            path = Path(folder, "weather_contract", name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        sys.path.insert(0, folder)
        package = importlib.import_module("weather_contract")

        async def tool(self: Any, arguments: Any, ctx: Any) -> Any:
            return package.models.Tool0Output(city=arguments.city)

        kept: Any = type("Weather", (package.WeatherContract,), {"tool_0": tool})()
        assert kept.catalog.tools
        return all_servers([kept])


def server(count: int) -> None:
    """Generate the contract package of a server, in memory."""
    contract_files(contract_of(document(count)), [PROTOCOL], "weather", "contract.json")


def client(count: int) -> None:
    """Generate a typed client, in memory."""
    client_files(contract_of(document(count)), PROTOCOL, "WeatherClient", "weather", "contract.json")


async def microseconds(*servers: AnyServer) -> float:
    """Return the processor time of a call in microseconds, there and back in memory: the median of several rounds."""
    ours, theirs = pair()
    rounds: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, theirs, *servers)
        async with Client.connect(ours) as caller:
            for _ in range(ROUNDS):
                begin = time.process_time()
                for _ in range(CALLS):
                    await caller.call_tool("tool-0", {"city": "Oslo"})
                rounds.append((time.process_time() - begin) / CALLS * 1e6)
    return statistics.median(rounds)


def seconds(write: Callable[[int], None], count: int) -> float:
    """Return the processor seconds for generating the code of so many tools."""
    begin = time.process_time()
    write(count)
    return time.process_time() - begin


def main() -> None:
    """Print the figures and their ratios."""
    for what, write in (("server", server), ("client", client)):
        few, many = seconds(write, FEW), seconds(write, MANY)
        print(f"{what}: {FEW} tools {few:.2f} s, {MANY} tools {many:.2f} s = {many / few:.1f}x")
    by_hand, by_contract = anyio.run(microseconds, Handwritten()), anyio.run(microseconds, *contracted())
    print(f"a call: by hand {by_hand:.0f} us, by contract {by_contract:.0f} us = {by_contract / by_hand:.2f}x")


if __name__ == "__main__":
    main()
