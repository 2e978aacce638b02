"""Measure the memory of an idle HTTP+SSE session: 1,000 initialized sessions in one process of ours."""

import argparse
import json
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

from costs import memory
from ports import free_port, wait_for

SERVER = Path(__file__).parent / "echo_server.py"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def main() -> None:
    """Print the memory before, after, and for each session."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    sessions = parser.parse_args().sessions
    needed = 4 * sessions + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    port = free_port()
    command = [sys.executable, str(SERVER), "2024-11-05", "--sse", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port)
            open_session(port).close()  # warm
            before = memory(server.pid)
            begin = time.perf_counter()
            streams = [open_session(port) for _ in range(sessions)]
            seconds = time.perf_counter() - begin
            after = memory(server.pid)
            print(f"{len(streams)} sessions opened in {seconds:.1f} s")
            each = (after - before) / sessions * 1024
            print(f"{before:.1f} MiB before, {after:.1f} MiB after: {each:.1f} KiB each")
        finally:
            server.terminate()


def open_session(port: int) -> socket.socket:
    """Open a stream, initialize its session, and leave it idle."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(f"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    seen = b""
    while b"data: " not in seen or not seen.split(b"data: ", 1)[1].count(b"\n"):
        seen += stream.recv(65536)
    endpoint = seen.split(b"data: ", 1)[1].split(b"\r\n", 1)[0].split(b"\n", 1)[0].decode()
    post(port, endpoint, INITIALIZE)
    while b"serverInfo" not in seen:
        seen += stream.recv(65536)
    post(port, endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return stream


def post(port: int, endpoint: str, message: object) -> None:
    """Post one message on a connection of its own."""
    body = json.dumps(message).encode()
    head = (
        f"POST {endpoint} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + body)
        status = connection.recv(65536).split(b" ", 2)[1]
        if status != b"202":
            sys.exit(f"unexpected status {status.decode()}")


if __name__ == "__main__":
    main()
