"""`mcp-bindgen dev`: a page in a real browser that lists, calls and shows messages, and who cannot reach it."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from tests.support.browser import chromium
from tests.support.commands import COMMAND, bindgen

SERVER = """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp

class Notes(Server):
    info = mcp.Implementation(name="notes", version="1")

    async def list_tools(self, params, ctx):
        schema = mcp.ToolInputSchema(properties={"text": {"type": "string"}}, required=["text"])
        return mcp.ListToolsResult(tools=[mcp.Tool(name="NAME<b>", input_schema=schema)])

    async def call_tool(self, params, ctx):
        form = mcp.ElicitRequestFormParamsRequestedSchema.model_validate(
            {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
        )
        answer = await ctx.ask_params("q", mcp.ElicitRequestFormParams(message="Sure?", requested_schema=form))
        return mcp.CallToolResult(content=[mcp.TextContent(text=f"{params.arguments} {answer.action}")])

run(Notes())
"""


@dataclass
class Page:
    """A page that is served, and the script behind it."""

    url: str
    script: Path

    @property
    def origin(self) -> str:
        """The page's origin."""
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        """The page's token."""
        return self.url.partition("token=")[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The command, running."""
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


@pytest.mark.full
def test_the_page_lists_calls_asks_and_shows_messages_and_follows_changes(page: Page) -> None:
    page.script.write_text(SERVER.replace("NAME", "add"), "utf-8")
    complaints: list[str] = []
    with chromium() as browser:
        window = browser.new_page()
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.goto(page.url)
        expect(window.locator("#state")).to_have_text("ready", timeout=30_000)
        window.get_by_role("button", name="add<b>").click()
        assert '"text": ""' in window.input_value("#params")
        window.fill("#params", '{"name": "add", "arguments": {"text": "milk"}}')
        window.get_by_role("button", name="Send").click()
        window.fill("#questions textarea", '{"sure": true}')
        window.get_by_role("button", name="accept").click()
        expect(window.locator("#answer")).to_contain_text("{'text': 'milk'} accept")
        for said in ("→ server/discover", "→ tools/call", "← result", "elicitation/create"):
            expect(window.locator("#wire")).to_contain_text(said)
        window.fill("#method", "tools/cal")
        window.get_by_role("button", name="Send").click()
        expect(window.locator("#answer")).to_contain_text("did you mean")
        page.script.write_text(SERVER.replace("NAME", "put"), "utf-8")
        expect(window.get_by_role("button", name="put<b>")).to_be_visible(timeout=30_000)
        page.script.write_text("raise SystemExit('not yet')", "utf-8")
        expect(window.locator("#state")).to_contain_text("not yet", timeout=30_000)
        page.script.write_text(SERVER.replace("NAME", "back"), "utf-8")
        expect(window.get_by_role("button", name="back<b>")).to_be_visible(timeout=30_000)
    assert complaints == []


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


@pytest.mark.parametrize(("who", "headers", "status"), ATTACKS, ids=[attack[0] for attack in ATTACKS])
def test_nobody_else_reaches_the_page_or_what_it_asks(
    page: Page, who: str, headers: dict[str, str], status: int
) -> None:
    port = page.origin.rpartition(":")[2]
    filled = {
        name: value.replace("TOKEN[:-1]", page.token[:-1]).replace("TOKEN", page.token).replace("PORT", port)
        for name, value in headers.items()
    }
    with httpx2.Client(base_url=page.origin, timeout=10) as client:
        for method, path in (
            ("GET", "/"),
            ("GET", "/offers"),
            ("GET", "/events"),
            ("POST", "/call"),
            ("POST", "/answer"),
        ):
            answer = client.request(method, path, headers=filled)
            assert answer.status_code == status, path
            assert page.token not in answer.text
            assert "access-control-allow-origin" not in answer.headers


def test_the_page_is_on_this_machine_only_and_runs_nothing_of_others(page: Page) -> None:
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


BROWSER = """#!{python}
import pathlib, stat, sys, urllib.parse, urllib.request
page = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
modes = [stat.S_IMODE(one.stat().st_mode) for one in (page, page.parent)]
seen = pathlib.Path("/proc/self/cmdline").read_bytes(), pathlib.Path("/proc/self/environ").read_bytes()
pathlib.Path({found!r}).write_text(repr((*seen, modes, str(page), page.read_text())))
"""


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


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    for words, said in (
        (("'",), "not a command"),
        (("x", "--watch", "nowhere"), "is no folder to watch"),
        ((str(tmp_path),), "no project of ours"),
    ):
        done = bindgen("dev", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert said in done.stderr


@pytest.mark.full
def test_ctrl_c_ends_it_and_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        f"import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\n{SERVER}", "utf-8"
    )
    with subprocess.Popen(
        [str(COMMAND), "dev", "server.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(2)
        assert process.wait(20) in (0, 130)
    pid = int((tmp_path / "pid").read_text())
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    assert not state.strip() or state.startswith("Z"), sys.executable
