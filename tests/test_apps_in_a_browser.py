"""MCP Apps in a real browser: the example app works, and a hostile app reaches only its allowed origins."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.harness.browser import chromium
from tests.harness.commands import ROOT
from tests.harness.file_server import FileServer
from tests.harness.processes import free_port, process

pytestmark = pytest.mark.full

HOSTILE = """
import json
import sys
from pathlib import Path
from typing import Any

from mcp_bindgen.app import App, run

app = App("hostile")
ELSEWHERE = json.loads(sys.argv.pop(1))

@app.tool(ui="ui://evil/app")
def look() -> str:
    return "look"

@app.tool(visibility=["model"])
def for_models() -> str:
    return "only for models"

@app.tool(visibility=["app"])
def report(found: dict[str, Any]) -> None:
    Path(__file__).with_name("report.json").write_text(json.dumps(found))

@app.ui("ui://evil/app", connect_domains=ELSEWHERE)
def page() -> str:
    return Path(__file__).with_name("evil.html").read_text()

@app.resource("note://secret")
def secret() -> str:
    return "not an app"

run(app)
"""


@contextmanager
def hosted(server: list[object], folder: Path) -> Iterator[str]:
    """Run a server over HTTP and the host; yield the address of the host's page."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    with process([sys.executable, *server, "--http", address], port, folder / "server.log"):
        command = [sys.executable, str(ROOT / "examples" / "apps_host.py"), f"http://{address}/mcp"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
            try:
                assert host.stdout is not None
                yield host.stdout.readline().strip()
            finally:
                host.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def use(page: Page, address: str, tool: str) -> None:
    page.goto(address)
    page.get_by_role("button", name=tool).click()


def test_a_browser_shows_an_app_and_its_button_calls_a_tool(tmp_path: Path, browser: Browser) -> None:
    complaints: list[str] = []
    with hosted([ROOT / "examples" / "apps_server.py"], tmp_path) as address:
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        use(page, address, "roll")
        expect(page.locator("#text")).to_contain_text("result")
        first = page.locator("#text").inner_text()
        assert [button.inner_text() for button in page.get_by_role("button").all()] == ["roll"]
        app = page.frame_locator("#app iframe").frame_locator("iframe")
        expect(app.locator("#rolled")).to_have_text(str(json.loads(first)["result"]))
        expect(app.locator("#history")).to_have_text(str(json.loads(first)["result"]))
        app.get_by_role("button", name="Roll again").click()
        expect(app.locator("#history")).to_contain_text(",")
        rolled = app.locator("#rolled").inner_text()
        assert app.locator("#history").inner_text().split(", ")[1] == rolled
        (outer,) = page.main_frame.child_frames
        (inner,) = outer.child_frames
        assert outer.url.partition("/?")[0] != address
        assert outer.evaluate("document.querySelector('iframe').sandbox.value") == "allow-scripts"
        assert inner.evaluate("origin") == "null"
    assert complaints == []


def attack(browser: Browser, folder: Path, allowed: bool) -> tuple[dict[str, str], set[str], list[str]]:
    """Run the hostile app; return its report, its requests to another origin, and the URLs of the frames."""
    elsewhere = FileServer()
    Thread(target=elsewhere.serve_forever, daemon=True).start()
    for path in ("data", "post", "beacon", "image", "script", "frame", "itself", "style", "prefetch"):
        elsewhere.file(f"/{path}", b"data", Access_Control_Allow_Origin="*")
    server = folder / "server.py"
    server.write_text(HOSTILE)
    origin = elsewhere.url("").rstrip("/")
    try:
        with hosted([server, json.dumps([origin] if allowed else [])], folder) as address:
            html = (ROOT / "tests" / "harness" / "hostile_app.html").read_text("utf-8")
            (folder / "evil.html").write_text(html.replace("ELSEWHERE", origin).replace("HOST", address), "utf-8")
            page = browser.new_page()
            use(page, address, "look")
            report = folder / "report.json"
            for _ in range(200):
                if report.exists() and report.read_text():
                    break
                page.wait_for_timeout(100)
            page.wait_for_timeout(300)
            found: dict[str, str] = json.loads(report.read_text())
            frames = [frame.url for frame in page.frames]
            assert page.url.rstrip("/") == address
    finally:
        elsewhere.shutdown()
        elsewhere.server_close()
    return found, {path.partition("?")[0] for _, path, _ in elsewhere.asked}, frames


def test_a_hostile_app_reaches_neither_its_host_nor_the_network(tmp_path: Path, browser: Browser) -> None:
    found, asked, frames = attack(browser, tmp_path, allowed=False)
    assert asked == set()
    assert not [frame for frame in frames if frame.endswith(("/itself?secret", "/frame"))]
    assert found.pop("origin") == "null"
    assert json.loads(found.pop("tool of models")) == json.loads(found.pop("no tool")) == "error -32602"
    assert json.loads(found.pop("no method")) == "error -32601"
    assert found.pop("another app") == "sent"
    assert found.pop("beacon")  # browsers report that they sent the beacon, but none arrived
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}


def test_an_app_may_only_connect_to_its_declared_domains(tmp_path: Path, browser: Browser) -> None:
    found, asked, _ = attack(browser, tmp_path, allowed=True)
    assert found["fetch elsewhere"] == "data"
    assert asked <= {"/data", "/post", "/beacon", "/socket", "/prefetch"}
    for name in ("image", "script", "host's tools", "host's calls", "host's page", "window", "leading the host away"):
        assert found[name].startswith("refused"), (name, found[name])


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        *[("/tools", {"origin": origin}) for origin in ("http://evil.example", "null")],
        *[(path, {"host": "evil.example"}) for path in ("/tools", "/")],
        *[(f"/app?uri={uri}", {}) for uri in ("note://secret", "ui://evil/other")],
        ("/host.js", {"sec-fetch-site": "cross-site"}),
    ],
)
def test_the_host_refuses_foreign_requests_and_resources_that_are_no_apps(
    shared: str, path: str, headers: dict[str, str]
) -> None:
    answer = httpx2.get(f"{shared}{path}", headers=headers, timeout=60)
    assert answer.status_code in (403, 404)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("host")
    (folder / "server.py").write_text(HOSTILE)
    (folder / "evil.html").write_text("<!doctype html>")
    with hosted([folder / "server.py", "[]"], folder) as address:
        yield address
