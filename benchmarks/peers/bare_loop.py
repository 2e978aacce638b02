"""The least that a server can do: json.loads, json.dumps, no check of anything. The yardstick for speed."""

import asyncio
import json
import sys
from typing import Any


async def main() -> None:
    """Answers initialize and tools/call, line by line."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    while line := await reader.readline():
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any]
        if message["method"] == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bare", "version": "1"},
            }
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        else:
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        writer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
