"""Answer over stdio with the least work: json.loads, json.dumps, one write for all that was read, no checks."""

import json
import os
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


if __name__ == "__main__":
    unread = bytearray()
    while chunk := os.read(0, 1 << 20):
        unread += chunk
        if chunk.endswith(b"\n"):  # else the rest of a line is on its way
            os.write(1, "".join([answer(json.loads(line)) for line in unread.decode().split("\n") if line]).encode())
            unread.clear()
