"""The example client as a server that forks: everything is imported once, and each scenario gets a process of its own.

`python -m tests.conformance.client SOCKET` serves; `python client.py SOCKET URL` is the command for the suite: it hands
over its environment, standard streams and URL, and ends as the client does. It imports nothing that is slow to import.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress


def ask(path: str, url: str) -> int:
    """Have the client run; return its exit code."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        body = json.dumps([url, dict(os.environ)]).encode()
        socket.send_fds(line, [len(body).to_bytes(4, "big")], [0, 1, 2])
        line.sendall(body)
        return (line.recv(1) or b"\x01")[0]


def serve(path: str) -> None:
    """Run the client in a fork for each connection."""
    import anyio

    from tests.support.cluster_worker import example
    from tests.support.commands import ROOT

    client = example(ROOT / "examples" / "conformance_client.py")
    os.environ |= {"MCP_CONFORMANCE_SCENARIO": "auth/", "MCP_CONFORMANCE_PROTOCOL_VERSION": "2026-07-28"}
    with suppress(Exception):  # nothing answers there: what an attempt imports is what counts
        anyio.run(client.main, "http://127.0.0.1:1/mcp")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            line, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _run(client, line)
            line.close()


def _run(client: object, line: socket.socket) -> None:
    """Be the client, and tell its exit code."""
    import traceback

    import anyio

    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    url, variables = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.update(variables)
    code = 0
    try:
        anyio.run(client.main, url)  # type: ignore[attr-defined]
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    line.sendall(bytes([code]))
    os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(ask(*sys.argv[1:]))
    serve(sys.argv[1])
