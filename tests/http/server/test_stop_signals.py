"""Applications under an ASGI server that stops: streams end at once, and slow requests get an error response."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp_bindgen import v2026_07_28
from mcp_bindgen.http import HttpApp
from mcp_bindgen.http.server.app import leaving_on_stop
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import STATELESS, lone
from tests.harness.commands import ROOT
from tests.harness.http_wires import BOTH, listening
from tests.harness.processes import free_port, process

HEADERS = {"accept": BOTH, "mcp-protocol-version": STATELESS}
NUMBER = signal.SIGTERM


class Slow(v2026_07_28.Server):
    """Server with one tool, which takes a minute."""

    info = mcp.Implementation(name="slow", version="1")

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult:
        self.began.set()
        await asyncio.sleep(60)
        return mcp.CallToolResult(content=[])


@pytest.mark.full
def test_a_mounted_application_ends_its_streams_at_once(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-W", "error", "-m", "uvicorn", "--app-dir", ROOT / "examples", "mounted:app"]
    message = lone(1, "subscriptions/listen", {}, notifications={"toolsListChanged": True})
    with (
        process([*command, "--port", port, "--timeout-graceful-shutdown", 8], port, tmp_path / "log") as server,
        httpx2.Client(headers=HEADERS | {"mcp-method": "subscriptions/listen"}, timeout=20) as http,
        http.stream("POST", f"http://127.0.0.1:{port}/mcp", json=message) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == "event: message"
        server.terminate()
        assert any('"result"' in line for line in lines)
        server.wait(10)
    log = (tmp_path / "log").read_text("utf-8")
    assert "Traceback" not in log
    assert "Application shutdown complete" in log


async def test_a_request_that_exceeds_the_grace_period_gets_503(caplog: pytest.LogCaptureFixture) -> None:
    server, message = Slow(), lone(1, "tools/call", name="slow", arguments={})
    headers = HEADERS | {"mcp-method": "tools/call", "mcp-name": "slow"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        async with listening(HttpApp(server)) as port:
            asking = asyncio.create_task(http.post(f"http://127.0.0.1:{port}/mcp", json=message))
            await server.began.wait()
        response = await asking
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.json()["error"]["data"] == {"error": "unavailable"}
    assert "Exception in ASGI application" not in caplog.text


async def test_previous_signal_handlers_are_called_and_restored() -> None:
    heard: list[str] = []
    before = signal.signal(NUMBER, lambda number, frame: heard.append("server"))
    mine = signal.getsignal(NUMBER)
    try:
        with leaving_on_stop(lambda: heard.append("one")), leaving_on_stop(lambda: heard.append("two")):
            signal.raise_signal(NUMBER)
            assert heard == ["server"]
            await asyncio.sleep(0)
            assert heard == ["server", "one", "two"]
        assert signal.getsignal(NUMBER) is mine
        with leaving_on_stop(lambda: heard.append("three")):
            signal.signal(NUMBER, other := lambda number, frame: None)  # the program installs another handler
        assert signal.getsignal(NUMBER) is other
    finally:
        signal.signal(NUMBER, before)


async def test_no_signal_handler_is_installed_over_the_default_or_in_a_thread() -> None:
    before = signal.signal(NUMBER, signal.SIG_DFL)
    try:
        with leaving_on_stop(lambda: None):
            assert signal.getsignal(NUMBER) is signal.SIG_DFL
    finally:
        signal.signal(NUMBER, before)
    interrupt, failed = signal.getsignal(signal.SIGINT), threading.Event()

    def enter() -> None:
        with leaving_on_stop(failed.set):
            assert signal.getsignal(signal.SIGINT) is interrupt

    await asyncio.to_thread(enter)
    assert not failed.is_set()
