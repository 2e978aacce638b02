"""A client that starts `weather_server.py` and asks it for the weather: `python examples/weather_client.py`."""

import sys
from pathlib import Path

import anyio

from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2025_11_25 import types as mcp

SERVER = Path(__file__).with_name("weather_server.py")


class Visitor(Client):
    """A client with a name."""

    info = mcp.Implementation(name="visitor", version="1.0.0")


def show(progress: mcp.ProgressNotificationParams) -> None:
    """Print how far a call is."""
    print(f"  {progress.progress}/{progress.total} {progress.message}")


async def main() -> None:
    """Connect, list and call."""
    async with Visitor.connect(stdio(sys.executable, str(SERVER))) as client:
        print(f"connected to {client.server_info.name} {client.server_info.version}")
        async for tool in client.iter_tools():
            print(f"tool {tool.name}: {tool.description}")
        async for resource in client.iter_resources():
            contents = (await client.read_resource(resource.uri)).contents
            print(f"resource {resource.uri}: {len(contents)} part")

        print("calling forecast")
        patient = client.with_options(timeout=10, on_progress=show)
        result = await patient.call_tool("forecast", {"city": "Bergen", "days": 3})
        for block in result.content:
            match block:
                case mcp.TextContent(text=text):
                    print(text)
                case other:
                    print(f"a block of type {other.type}")


if __name__ == "__main__":
    anyio.run(main)
