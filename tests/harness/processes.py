"""Servers that run `worker.py` in separate processes, and clients for them."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.commands import ROOT

PATIENCE = 60.0
"""Time limit in seconds."""

PARSERS = ("httptools", "h11")
"""HTTP parsers of uvicorn: the one from the extra `http`, and its fallback."""


class New(v2026_07_28.Client):
    """Client that answers elicitations and counts notifications."""

    def __init__(self) -> None:
        self.news = 0

    def on_elicit(self, params: Any, ctx: Any) -> mcp.ElicitResult:
        (key,) = params.requested_schema.properties
        return mcp.ElicitResult(action="accept", content={key: f"my {key}"})

    def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
        self.news += 1


class Old(v2025_11_25.Client):
    """Client that answers elicitations."""

    def on_elicit(self, params: Any, ctx: Any) -> v2025_11_25.types.ElicitResult:
        (key,) = params.requested_schema.properties
        return v2025_11_25.types.ElicitResult(action="accept", content={key: f"my {key}"})


async def text(client: Any, name: str, **arguments: Any) -> str:
    """Return the text of a tool result; fail if it takes too long."""
    with anyio.fail_after(PATIENCE):
        said: str = (await client.call_tool(name, arguments)).content[0].text
        return said


def free_port() -> int:
    """Return an unused port.

    It is outside the range of ephemeral ports, and no other test process gets it while this one runs.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with ExitStack() as stack:
            try:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                if sys.platform == "linux":
                    reservation = socket.socket(socket.AF_UNIX)
                    stack.callback(reservation.close)
                    reservation.bind(f"\0a port of tests: {port}")
                    os.dup(reservation.fileno())  # open until this process ends
            except OSError:
                continue
        return port


def alive(pid: int) -> bool:
    """Return True if a process runs; a zombie does not count as running."""
    if sys.platform == "linux":
        try:
            state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2]
        except (FileNotFoundError, ProcessLookupError):
            return False
    else:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


@contextmanager
def process(command: Sequence[object], port: int, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that listens on a port."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            list(map(str, command)), cwd=ROOT, env=os.environ | variables, stdout=output, stderr=output
        )
    with running:
        try:
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    assert running.poll() is None, log.read_text()
                    assert time.monotonic() < end, log.read_text()
                    time.sleep(0.05)
            yield running
        finally:
            running.terminate()  # nginx has children, which a kill would leave behind
            with suppress(subprocess.TimeoutExpired):
                running.wait(5)
            running.kill()


def uvicorn(port: int, parser: str = "auto", program: str = sys.executable) -> list[object]:
    options = ["--port", port, "--timeout-graceful-shutdown", 2, "--timeout-keep-alive", 60, "--http", parser]
    return [program, "-m", "uvicorn", "tests.harness.worker:app", *options]


def granian(port: int) -> list[object]:
    command = Path(sys.executable).with_name("granian")
    return [command, "--interface", "asgi", "--port", port, "--workers-kill-timeout", 2, "tests.harness.worker:app"]
