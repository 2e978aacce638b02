"""Answer over ASGI with the least work: json.loads, json.dumps, no check of anything. The yardstick for speed."""

import json
import sys
from typing import Any

import uvicorn


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer tools/call: with JSON, or for `report` with a stream of one progress notification and the answer."""
    body = b""
    more = True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)
    message = json.loads(body)
    params = message["params"]
    result = {"content": [{"type": "text", "text": params["arguments"]["text"]}], "resultType": "complete"}
    answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    if params["name"] != "report":
        length = (b"content-length", str(len(answer)).encode())
        headers = [(b"content-type", b"application/json"), length]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})
        return
    token = params["_meta"]["progressToken"]
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    event = b"data: " + json.dumps(progress).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b"data: " + answer + b"\n\n"})


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), lifespan="off", log_config=None, access_log=False)
