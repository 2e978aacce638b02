"""Probes of orchestrators: permitted callers, contents of the response, and readiness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from mcp_bindgen.http import HttpApp, MemoryEventStore, SseApp
from mcp_bindgen.http.server import app as _probes
from mcp_bindgen.v2025_11_25 import Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import initialize
from tests.harness.effort import each
from tests.harness.http_wires import EVE, LATEST, Wires, who, wires

SECRET = "hunter2"
POD = "10.20.30.40:8000"
"""Address of a pod, as a kubelet names it."""


class Tools(Server):
    """Server with a name, a version and instructions that no probe may reveal."""

    info = mcp.Implementation(name=SECRET, version=SECRET)
    instructions = SECRET


class Store(MemoryEventStore):
    """Store that can be made unavailable."""

    def __init__(self, *states: object) -> None:
        super().__init__()
        self.states, self.asked = list(states), 0

    async def ready(self) -> bool:
        self.asked += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, float):
            await asyncio.sleep(state)
        if isinstance(state, Exception):
            raise state
        return bool(state)


async def probe(http: Wires, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Return the status, the body and the headers of a probe, without the headers of the HTTP server."""
    wire = await http.ask(method, path=path, **headers)
    if method == "HEAD":
        await wire.until(lambda received: b"\r\n\r\n" in received)
        status = int(wire.received.split()[1])
    else:
        status = await wire.status()
    kept = {name: value for name, value in wire.headers.items() if name not in ("date", "server")}
    return status, wire.received.partition(b"\r\n\r\n")[2], kept


@each("make", [HttpApp, SseApp])
async def test_a_kubelet_gets_only_the_status(make: Callable[..., Any]) -> None:
    async with wires(make(Tools(), principal=who)) as http:
        for path in ("/healthz", "/readyz"):
            headers = {"content-length": "3", "content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
            assert await probe(http, path, host=POD) == (200, b"ok\n", headers)
            assert (await probe(http, path, "HEAD", host=POD))[:2] == (200, b"")
            status, body, found = await probe(http, path, "POST", host=POD)
            assert (status, body, found["allow"]) == (405, b"", "GET, HEAD")


async def test_a_page_that_rebinds_dns_reaches_the_probes_only() -> None:
    async with wires(HttpApp(Tools())) as http:
        for host in (POD, "evil.example"):
            for path in ("/mcp", "/", "/healthz/", "/healthz/../mcp", "/readyz/mcp", "//healthz", "/mcp/healthz"):
                for method, content in (("GET", None), ("POST", initialize(LATEST))):
                    assert await (await http.ask(method, content, path, host=host)).status() == 421
            status, body, headers = await probe(http, "/readyz", host=host, origin="http://evil.example")
            assert (status, body) == (200, b"ok\n")
            assert not [name for name in headers if name.startswith("access-control")]


async def test_probes_return_the_same_response_to_every_caller() -> None:
    async with wires(HttpApp(Tools(), principal=who)) as http:
        await http.begin(user=EVE)
        answers = [await probe(http, "/readyz", **headers) for headers in ({}, EVE, {"authorization": "Bearer x"})]
        assert answers[0] == answers[1] == answers[2]
        assert SECRET not in str(answers)


async def test_a_stopping_application_is_alive_but_not_ready() -> None:
    app = HttpApp(Tools())
    async with wires(app) as http:
        assert await app.is_ready()
        app.leave()
        assert not await app.is_ready()
        assert (await probe(http, "/readyz"))[:2] == (503, b"not ready\n")
        assert (await probe(http, "/healthz"))[:2] == (200, b"ok\n")


@pytest.mark.parametrize(
    "away", [False, OSError("redis://user:hunter2@store"), 30.0], ids=["says so", "fails", "hangs"]
)
async def test_an_application_is_not_ready_while_its_store_is_unavailable(
    away: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_probes, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(_probes, "PROBE_TIMEOUT_SECONDS", 0.2)
    async with wires(HttpApp(Tools(), store=Store(True, away, True))) as http:
        found = [(await probe(http, "/readyz"))[:2] for _ in range(3)]
        assert found == [(200, b"ok\n"), (503, b"not ready\n"), (200, b"ok\n")]
        assert (await probe(http, "/healthz"))[0] == 200
    assert SECRET not in caplog.text
    assert caplog.text.count("not ready: the store cannot be reached") == 1


async def test_concurrent_probes_check_the_store_once() -> None:
    store = Store(0.05, True)
    async with wires(HttpApp(Tools(), store=store)) as http:
        work: list[Coroutine[Any, Any, Any]] = [probe(http, "/readyz") for _ in range(50)]
        assert ({found[0] for found in await asyncio.gather(*work)}, store.asked) == ({200}, 1)


async def test_the_probes_of_a_mounted_application_are_below_the_mount_point() -> None:
    app = HttpApp(Tools())
    transport = httpx2.ASGITransport(app=Starlette(routes=[Mount("/tools", app)], lifespan=app.lifespan))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{POD}") as client:
        assert ((await client.get("/tools/readyz")).text, (await client.get("/readyz")).status_code) == ("ok\n", 404)
