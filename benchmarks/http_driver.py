"""Starts servers of Streamable HTTP and drives them with prepared bytes over raw sockets: only servers differ."""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn.protocols.http.auto
from ports import free_port, wait_for

HERE = Path(__file__).parent
SERVERS = {
    "ours": "http_server.py",
    "official SDK": "peers/sdk_http_server.py",
    "SDK, JSON only": "peers/sdk_http_server.py --json",
    "bare ASGI": "peers/bare_asgi.py",
}
"""What is compared: all over the same uvicorn, each in a process of its own."""

PARSER = uvicorn.protocols.http.auto.AutoHTTPProtocol.__name__
"""Who reads HTTP for uvicorn: that of h11 unless httptools is installed."""

REVISION = "2026-07-28"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(name: str) -> Generator[tuple[int, int]]:
    """Runs a server; gives its process id and its port."""
    port = free_port()
    script, *options = SERVERS[name].split()
    command = [sys.executable, str(HERE / script), str(port), *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield process.pid, port
        finally:
            process.kill()


def post(port: int, id_: int, method: str, name: str | None = None, **params: object) -> bytes:
    """A request of 2026-07-28 as it is written to a socket.

    Args:
        port: Where it goes.
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
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": meta, **named, **params}}
    body = json.dumps(message).encode()
    head = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {REVISION}",
        f"Mcp-Method: {method}",
        *([] if name is None else [f"Mcp-Name: {name}"]),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def connect(port: int) -> socket.socket:
    """A connection that sends at once."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def drive(port: int, requests: Sequence[bytes], count: int) -> float:
    """Seconds for `count` requests: a connection for each of `requests` says it over and over again."""
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
    """The response to one request, on a connection of its own."""
    seen = b""
    with connect(port) as connection:
        connection.sendall(request)
        while not is_whole(seen):
            seen += connection.recv(1 << 16)
    return seen.decode()


def is_whole(response: bytes) -> bool:
    """Whether a response has arrived to its end."""
    head, blank, body = response.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = _LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")


def processor_time(pid: int) -> float:
    """Seconds that a process has kept a processor busy (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory(pid: int) -> float:
    """Resident memory of a process in MiB (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
