"""A generated server and a generated client in conversation, message by message: `python examples/conversation.py`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from mcp_bindgen.runtime import ProtocolError, RequestTimeout, Transport
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized
from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2025_11_25 import types as mcp

SERVER = Path(__file__).with_name("weather_server.py")
WIDTH = 110


class Shown(Transport):
    """A transport that prints the messages of another transport: `->` is sent by the client, `<-` by the server."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def receive(self) -> Sequence[bytes | Lost | Oversized]:
        """Receive messages and print them."""
        messages = await self.inner.receive()
        for message in messages:
            show("<-", message)
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Print messages and send them."""
        for message in messages:
            show("->", message)
        await self.inner.send(messages)

    async def close(self) -> None:
        """Close the other transport."""
        await self.inner.close()


class Guest(Client):
    """A client with a name."""

    info = mcp.Implementation(name="guest", version="1.0.0")


def show(direction: str, message: bytes | Lost | Oversized) -> None:
    """Print one message on one line."""
    text = message.decode() if isinstance(message, bytes) else f"({type(message).__name__.lower()})"
    line = f"  {direction} {text}"
    print(line if len(line) <= WIDTH else f"{line[: WIDTH - 35]} ... {line[-30:]}")


def said(progress: mcp.ProgressNotificationParams) -> None:
    """Print the message of a progress notification."""
    print(f"     {progress.progress} of {progress.total}: {progress.message}")


async def main() -> None:
    """Initialize, list, call with progress, time out, and make a mistake."""
    print("connect")
    async with stdio(sys.executable, str(SERVER)) as pipe, Guest.connect(Shown(pipe)) as client:
        print("list the tools")
        tools = await client.list_tools()
        print(f"     they are {', '.join(tool.name for tool in tools.tools)}")

        print("call one, with progress")
        await client.with_options(on_progress=said).call_tool("forecast", {"city": "Oslo", "days": 2})

        print("call a slow one, and cancel it after 0.2 seconds")
        try:
            await client.with_options(timeout=0.2).call_tool("await_sun")
        except RequestTimeout as error:
            print(f"     RequestTimeout: {error}")

        print("call one that does not exist")
        try:
            await client.call_tool("nothing")
        except ProtocolError as error:
            print(f"     ProtocolError: {error}")


if __name__ == "__main__":
    anyio.run(main)
