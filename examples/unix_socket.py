"""A transport of your own: MCP over a Unix domain socket, both sides in one file: `python examples/unix_socket.py`."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from mcp_bindgen.runtime import ConnectionClosed, Context, serve
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Transport
from mcp_bindgen.v2025_11_25 import Client, Server
from mcp_bindgen.v2025_11_25 import types as mcp

GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Socket(Transport):
    """One message a line. These three methods are all that a `Transport` needs."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.lines = BufferedByteReceiveStream(stream)

    async def receive(self) -> Sequence[bytes]:
        """Return the next message, or nothing when the other side is gone."""
        try:
            return [await self.lines.receive_until(b"\n", MAX_MESSAGE)]
        except GONE:
            return []

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order."""
        try:
            await self.stream.send(b"".join(message + b"\n" for message in messages))
        except GONE:
            raise ConnectionClosed("the socket is closed") from None

    async def close(self) -> None:
        """Close the connection."""
        await self.stream.aclose()


class Upper(Server):
    """Shouts."""

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[mcp.Tool(name="upper", input_schema=mcp.ToolInputSchema())])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        text = str((params.arguments or {}).get("text"))
        return mcp.CallToolResult(content=[mcp.TextContent(text=text.upper())])


async def answer(stream: ByteStream) -> None:
    """Serve one client."""
    await serve(Socket(stream), Upper())


async def main() -> None:
    """Listen, connect and call."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mcp.sock"
        async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            async with Client.connect(Socket(await anyio.connect_unix(path))) as client:
                print("tools:", ", ".join([tool.name async for tool in client.iter_tools()]))
                for block in (await client.call_tool("upper", {"text": "hello"})).content:
                    print(block.text if isinstance(block, mcp.TextContent) else block)
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
