"""`mcp-bindgen dev`: a page in a real browser that lists, calls and shows messages; foreign clients have no access."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import pytest
from watchfiles import Change

from tests.harness.browser import check_accessibility, chromium
from tests.harness.commands import COMMAND, complaint
from tests.harness.processes import alive

if TYPE_CHECKING:
    from playwright.sync_api import Locator
    from playwright.sync_api import Page as Window

SERVER = """
from typing import Annotated, Literal

from mcp_bindgen.app import App, Context
from mcp_bindgen.v2026_07_28 import types as mcp
from pydantic import BaseModel, Field

app = App("notes", instructions="Keep notes.")

class Place(BaseModel):
    shelf: int = Field(ge=1, le=9)
    room: Literal["north", "south"]

@app.tool(name="NAME<b>")
async def put(text: str, ctx: Context, times: Annotated[int, Field(ge=2, description="How often.")],
              kind: Literal["plain", "fancy"] | None = None, tags: list[str] = ["new"], loud: bool = False) -> str:
    "Put a note down."
    sure = await ctx.ask("Sure?", bool, key="sure")
    place = await ctx.ask("Where?", Place, key="where")
    return f"{text} {times} {kind} {tags} {loud} {sure} {place.shelf} {place.room}"

@app.tool
def fail() -> str:
    "Fail."
    raise ValueError("no shelf")

@app.resource("note://{id}/{part}")
def note(id: str, part: str) -> str:
    "Return a note."
    return f"note {id}, part {part}"

@app.prompt
def advise(topic: str) -> str:
    "Advise."
    return f"What about {topic}?"
"""

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@dataclass
class Page:
    """Served page: its URL, its origin, its token, and the script of the server."""

    url: str
    script: Path

    def __post_init__(self) -> None:
        self.origin, _, self.token = self.url.partition("/?token=")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Yield the page of a running `mcp-bindgen dev`."""
    folder = tmp_path_factory.mktemp("dev")
    script = folder / "server.py"
    script.write_text(SERVER.replace("NAME", "add"), "utf-8")
    command = [str(COMMAND), "dev", "server.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", process.stdout.readline())
            assert found is not None
            yield Page(found[0], script)
        finally:
            process.terminate()
            assert process.wait(20) is not None


@pytest.fixture(scope="module")
def window(page: Page) -> Iterator[Window]:
    """Yield the page in a browser; afterwards check that no script failed."""
    with chromium() as browser:
        window = browser.new_page()
        complaints: list[str] = []
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        window.goto(page.url)
        expect(window.locator("#state")).to_have_text("ready", timeout=30_000)
        yield window
        assert complaints == []


def expect(place: Locator) -> Any:
    """Return Playwright's assertions about an element; the import is local because only these tests need Playwright."""
    from playwright.sync_api import expect as expecting

    return expecting(place)


@pytest.mark.full
def test_offers_are_in_groups_and_forms_have_valid_defaults(window: Window) -> None:
    expect(window.locator("header")).to_contain_text("Keep notes.")
    for heading in ("Tools (2)", "Prompts (1)", "Resource templates (1)"):
        expect(window.get_by_role("heading", name=heading)).to_be_visible()
    window.get_by_role("button", name="add<b> Put a note down.").click()
    sent = json.loads(window.input_value("#params"))
    assert sent == {"name": "add<b>", "arguments": {"text": "", "times": 2, "tags": ["new"], "loud": False}}
    expect(window.get_by_label("times required")).to_have_attribute("min", "2")
    expect(window.get_by_text("How often. (at least 2)")).to_be_visible()
    window.get_by_label("Filter offers").fill("advise")
    expect(window.locator("#offers li > button:visible")).to_have_count(1)
    window.get_by_label("Filter offers").fill("")


def press(window: Window, name: str) -> None:
    """Press a button."""
    window.get_by_role("button", name=name).click()


def fill(window: Window, label: str, text: str) -> None:
    """Fill in a field."""
    window.get_by_label(label).fill(text)


def shows(window: Window, place: str, *texts: str | re.Pattern[str]) -> None:
    """Wait until an element of the page contains all texts."""
    for text in texts:
        expect(window.locator(place)).to_contain_text(text)


@pytest.mark.full
def test_a_form_is_sent_elicitations_are_answered_and_traffic_is_timed(window: Window) -> None:
    press(window, "add<b> Put a note down.")
    fill(window, "text required", "milk")
    window.get_by_label("kind").select_option("fancy")
    fill(window, "tags", "[oops")
    press(window, "Send")
    expect(window.get_by_role("alert").first).to_contain_text("tags is not JSON")
    fill(window, "tags", '["a"]')
    press(window, "Send")
    press(window, "Yes")
    fill(window, "shelf required", "7")
    window.get_by_label("room required").select_option("south")
    press(window, "Accept")
    shows(window, "#answer", "milk 2 fancy ['a'] False True 7 south", re.compile(r"Done after \d+ ms"))
    shows(window, "#wire", "→ tools/call add<b>", re.compile(r"← result of tools/call #\d+ \d+ ms"))


@pytest.mark.full
def test_results_are_shown_by_kind(window: Window) -> None:
    for offer, fields, texts in (
        ("fail Fail.", {}, ("The tool reports an error", "no shelf")),
        ("note://{id}/{part}", {"id required": "a b", "part required": "2"}, ("note a b, part 2",)),
        ("advise Advise.", {"topic required": "tea"}, ("What about tea?",)),
        ("Any request", {}, ("Done",)),
        (None, {"Method": "tools/cal"}, ("did you mean",)),
    ):
        if offer is not None:
            press(window, offer)
        for label, text in fields.items():
            fill(window, label, text)
        press(window, "Send")
        shows(window, "#answer", *texts)
    blocks = [{"type": "image", "mimeType": "image/gif", "data": PIXEL}, {"type": "odd"}]
    window.evaluate("result => show({result}, 1)", {"content": blocks})
    assert window.locator("#answer img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    shows(window, "#answer", '"odd"')


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_accessible(window: Window, width: int, scheme: Literal["light", "dark"]) -> None:
    window.set_viewport_size({"width": width, "height": 900})
    window.emulate_media(color_scheme=scheme)
    window.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    check_accessibility(window)
    assert window.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.full
def test_the_page_shows_changes_of_the_server_code(page: Page, window: Window) -> None:
    page.script.with_name("notes.db-wal").write_text("data that the server writes", "utf-8")
    page.script.write_text(SERVER.replace("NAME", "put"), "utf-8")
    expect(window.get_by_role("button", name="put<b>")).to_be_visible(timeout=30_000)
    expect(window.locator("#wire")).to_contain_text("changed: ")
    expect(window.locator("#wire")).not_to_contain_text("notes.db-wal")
    page.script.write_text("raise SystemExit('not yet')", "utf-8")
    expect(window.locator("#state")).to_contain_text("not yet", timeout=30_000)
    page.script.write_text(f"print('hello')\n{SERVER.replace('NAME', 'back')}", "utf-8")
    expect(window.get_by_role("button", name="back<b>")).to_be_visible(timeout=30_000)
    expect(window.locator("#wire")).to_contain_text("stdout, no message: hello")


ATTACKS: list[tuple[str, dict[str, str], int]] = [
    ("no token", {}, 403),
    ("another token", {"x-dev-token": "x" * 43}, 403),
    ("part of the token", {"x-dev-token": "TOKEN[:-1]"}, 403),
    ("another page", {"x-dev-token": "TOKEN", "origin": "https://evil.example"}, 403),
    ("a file", {"x-dev-token": "TOKEN", "origin": "null"}, 403),
    ("another port", {"x-dev-token": "TOKEN", "origin": "http://127.0.0.1:1"}, 403),
    ("a name that resolves to this machine", {"x-dev-token": "TOKEN", "host": "evil.example"}, 421),
    ("that name with our port", {"x-dev-token": "TOKEN", "host": "evil.example:PORT"}, 421),
]


@pytest.mark.full
def test_foreign_requests_to_the_page_are_refused(page: Page) -> None:
    for who, headers, status in ATTACKS:
        port = page.origin.rpartition(":")[2]
        filled = {
            name: value.replace("TOKEN[:-1]", page.token[:-1]).replace("TOKEN", page.token).replace("PORT", port)
            for name, value in headers.items()
        }
        with httpx2.Client(base_url=page.origin, timeout=10) as client:
            for path in ("/", "/offers", "/events", "/call", "/answer"):
                answer = client.request("POST" if path in ("/call", "/answer") else "GET", path, headers=filled)
                assert answer.status_code == status, (who, path)
                assert page.token not in answer.text
                assert "access-control-allow-origin" not in answer.headers


def test_the_page_has_strict_security_headers_and_a_new_nonce_each_time(page: Page) -> None:
    with httpx2.Client(base_url=page.origin, timeout=10) as client:
        answer = client.get("/", params={"token": page.token})
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert page.token not in answer.text
        again = client.get("/", params={"token": page.token})
        assert again.headers["content-security-policy"] != policy, "a nonce is used once"
        body = b'{"method": "ping", "params": ' + b"[" * 5_000_000
        assert client.post("/call", content=body, headers={"x-dev-token": page.token}).status_code == 200
        assert client.get("/offers", headers={"x-dev-token": page.token}).status_code == 200


def test_the_page_is_served_with_limits_for_heads(page: Page) -> None:
    with httpx2.Client(base_url=page.origin, timeout=10) as client:
        headers = [("x-dev-token", page.token), *(("x-a", "b") for _ in range(1500))]
        assert client.get("/offers", headers=headers).status_code in (400, 431)


BROWSER = """#!{python}
import pathlib, stat, sys, urllib.parse, urllib.request
page = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
modes = [stat.S_IMODE(one.stat().st_mode) for one in (page, page.parent)]
seen = pathlib.Path("/proc/self/cmdline").read_bytes(), pathlib.Path("/proc/self/environ").read_bytes()
pathlib.Path({found!r}).write_text(repr((*seen, modes, str(page), page.read_text())))
"""


@pytest.mark.full
def test_the_browser_is_opened_without_the_token_in_the_list_of_processes(tmp_path: Path) -> None:
    found, browser = tmp_path / "found", tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable, found=str(found)))
    browser.chmod(0o755)
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    command = [str(COMMAND), "dev", "server.py", "--open"]
    settings = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        token = url.partition("token=")[2]
        limit = time.monotonic() + 30
        while not found.exists() or not found.read_text().endswith(")"):
            assert time.monotonic() < limit
            time.sleep(0.05)
        seen, environment, modes, page, text = ast.literal_eval(found.read_text())
        own = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert len(token) >= 40
    assert not [one for one in (seen, environment, own) if token.encode() in one]
    assert modes == [0o600, 0o700]
    assert f'content="0;url={url}"' in text
    assert not Path(page).parent.exists()


def test_invalid_input_gives_a_one_line_error(tmp_path: Path) -> None:
    for words, said in (
        (("'",), "not a command"),
        (("x", "--watch", "nowhere"), "nowhere: there is no such folder; give --watch a folder"),
        ((tmp_path,), "no project of ours"),
    ):
        assert said in complaint("dev", *words, cwd=tmp_path)


def test_only_source_files_restart_the_server(tmp_path: Path) -> None:
    from mcp_bindgen.commands.dev_server import SOURCES

    sources = ["server.py", "tools.ts", "pyproject.toml", "page.html", "skills/a/SKILL.md", ".env"]
    written = ["state.json", "notes.db", "a.sqlite-wal", "a.log.1", "server.pid", "__pycache__/a.pyc", ".venv/a.py"]
    assert [name for name in sources + written if SOURCES(Change.modified, str(tmp_path / name))] == sources


@pytest.mark.full
def test_ctrl_c_ends_dev_and_its_server(tmp_path: Path) -> None:
    started, code = tmp_path / "pid", "import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\n"
    (tmp_path / "server.py").write_text(code + SERVER, "utf-8")
    command = [str(COMMAND), "dev", "server.py"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        assert process.stdout is not None
        origin, _, token = process.stdout.readline().split()[-1].partition("/?token=")
        with httpx2.stream("GET", f"{origin}/events", headers={"x-dev-token": token}, timeout=60) as open_page:
            lines = open_page.iter_lines()  # its end closes the page
            assert "starting" in next(lines)
            deadline = time.monotonic() + 60
            while not started.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(2)
            assert process.wait(20) in (0, 130)
        assert process.communicate()[1] == ""
    assert not alive(int(started.read_text()))
