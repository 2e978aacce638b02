"""Answer over stdio with the least work: json.loads, json.dumps, one write for all that was read, no checks.

With `--asyncio`, an asyncio loop reads line by line and writes each answer by itself.
"""

import asyncio
import json
import os
import sys
from typing import Any


def answer(message: dict[str, Any]) -> str:
    """Return the response to a request; nothing for a notification."""
    if "id" not in message:
        return ""
    result: dict[str, Any]
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "bare", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n"


async def with_asyncio() -> None:
    """Answer each line of stdin until its end."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    while line := await reader.readline():
        if said := answer(json.loads(line)):
            writer.write(said.encode())
            await writer.drain()


def blocking() -> None:
    """Answer all that is read at once with one write."""
    unread = bytearray()
    while chunk := os.read(0, 1 << 20):
        unread += chunk
        if chunk.endswith(b"\n"):  # else the rest of a line is on its way
            os.write(1, "".join([answer(json.loads(line)) for line in unread.decode().split("\n") if line]).encode())
            unread.clear()


if __name__ == "__main__":
    if "--asyncio" in sys.argv:
        asyncio.run(with_asyncio())
    else:
        blocking()
