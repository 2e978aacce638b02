"""Two servers behind one host, configured by the usual `mcpServers` file: `python examples/two_servers_host.py`."""

import json
import sys
import tempfile
from pathlib import Path

import anyio

from mcp_bindgen.host import Host
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2025_11_25 import types as mcp

HERE = Path(__file__).parent
CONFIG = {
    "mcpServers": {
        "weather": {"command": sys.executable, "args": [str(HERE / "weather_server.py")]},
        "echo": {"command": sys.executable, "args": [str(HERE.parent / "benchmarks" / "echo_server.py")]},
        "broken": {"command": "there-is-no-such-program"},
    }
}


def said(result: mcp.CallToolResult) -> str:
    """Return the text of a result."""
    return " ".join(block.text for block in result.content if isinstance(block, mcp.TextContent))


async def main() -> None:
    """Start the servers, show their tools, and call one tool of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mcp.json"
        path.write_text(json.dumps(CONFIG), "utf-8")
        async with Host.from_config(path, client=Client) as host:
            print("running:", ", ".join(host.clients))
            for name, reason in host.failures.items():
                print(f"failed: {name}: {reason}")
            for offer in await host.tools():
                print(f"{offer.server} offers {offer.item.name}")
            print(said(await host.call_tool("forecast", {"city": "Oslo"})))
            print(said(await host.call_tool("echo", {"text": "hello"}, server="echo")))


if __name__ == "__main__":
    anyio.run(main)
