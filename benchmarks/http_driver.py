"""Start servers of Streamable HTTP and drive them with prepared bytes over raw sockets: only servers differ."""

from __future__ import annotations

import json
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ports import free_port, wait_for

HERE = Path(__file__).parent
SERVERS = {
    "ours": "http_server.py",
    "official SDK": "peers/sdk_http_server.py",
    "SDK, JSON only": "peers/sdk_http_server.py --json",
    "bare ASGI": "peers/bare_asgi.py",
}
"""What is compared: all over the same uvicorn, each in a process of its own."""

REVISION = "2026-07-28"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextmanager
def serving(name: str) -> Generator[tuple[int, int]]:
    """Run one of `SERVERS`, or a script; give its process id and its port."""
    port = free_port()
    script, *options = SERVERS.get(name, name).split()
    command = [sys.executable, str(HERE / script), str(port), *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield process.pid, port
        finally:
            process.kill()


def message(id_: int, method: str, name: str | None = None, **params: object) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a request of 2026-07-28.

    Args:
        id_: Its id, which is its progress token, too.
        method: Its method.
        name: What it names in its params and headers: the tool.
        params: The rest of its params.
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": id_,
    }
    named = {} if name is None else {"name": name}
    document = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": meta, **named, **params}}
    body = json.dumps(document).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
        **({} if name is None else {"Mcp-Name": name}),
        "Content-Length": str(len(body)),
    }
    return headers, body


def post(port: int, id_: int, method: str, name: str | None = None, **params: object) -> bytes:
    """Return a request as it is written to a socket."""
    headers, body = message(id_, method, name, **params)
    head = [f"Host: 127.0.0.1:{port}", *(f"{key}: {value}" for key, value in headers.items())]
    return "\r\n".join(["POST /mcp HTTP/1.1", *head, "", ""]).encode() + body


def connect(port: int) -> socket.socket:
    """Return a connection that sends without delay (TCP_NODELAY)."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def drive(port: int, requests: Sequence[bytes], count: int) -> float:
    """Return the seconds for `count` requests: a connection for each of `requests` sends it over and over again."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for request in requests:
            connection = stack.enter_context(connect(port))
            selector.register(connection, selectors.EVENT_READ, [request, b""])
            connection.sendall(request)
        begin = time.perf_counter()
        done, sent = 0, len(requests)
        while done < count:
            for key, _ in selector.select():
                ready: socket.socket = key.fileobj  # type: ignore[assignment]
                key.data[1] += ready.recv(1 << 16)
                if not is_whole(key.data[1]):
                    continue
                if not key.data[1].startswith(b"HTTP/1.1 200 "):
                    sys.exit(f"unexpected answer: {key.data[1].decode()}")
                done += 1
                key.data[1] = b""
                if sent < count:
                    ready.sendall(key.data[0])
                    sent += 1
        return time.perf_counter() - begin


def ask(port: int, request: bytes) -> str:
    """Return the response to one request, on a connection of its own."""
    seen = b""
    with connect(port) as connection:
        connection.sendall(request)
        while not is_whole(seen):
            seen += connection.recv(1 << 16)
    return seen.decode()


def is_whole(response: bytes) -> bool:
    """Tell whether a response is complete."""
    head, blank, body = response.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = _LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")
