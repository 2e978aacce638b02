"""Logins from the command line with a real authorization server, a real browser, real terminals and processes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page

from mcp_bindgen.auth.store import FileStore
from tests.harness.browser import chromium
from tests.harness.commands import COMMAND, Done
from tests.harness.forks import PYTHON
from tests.harness.processes import PATIENCE, free_port, process
from tests.harness.protected import Protected
from tests.interop.processes import HERE, node
from tests.interop.test_authorization import EXAMPLE, SECRET, callback_port, example, issuer

__all__ = ["callback_port", "example", "issuer"]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals"),
]

# Replaces the user's browser: it writes the URL to a file, and the test opens it in Chromium.
OPENER = '#!/bin/sh\nprintf %s "$1" > "$OPENED.new" && mv "$OPENED.new" "$OPENED"\n'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@dataclass
class User:
    """User of the command line.

    Attributes:
        home: The user's home folder.
        browser: The user's browser.
    """

    home: Path
    browser: Browser

    @property
    def opened(self) -> Path:
        """Return the file with the URL that the command opened."""
        return self.home / "opened"

    @property
    def store(self) -> Path:
        """Return the folder of the token store."""
        return self.home / "mcp-bindgen" / "auth"

    def variables(self, **more: str) -> dict[str, str]:
        opener = self.home / "opener"
        opener.write_text(OPENER)
        opener.chmod(0o755)
        own = {"HOME": self.home, "XDG_CONFIG_HOME": self.home, "BROWSER": opener, "OPENED": self.opened}
        told = {name: str(value) for name, value in own.items()}
        return {**os.environ, **told, **more}

    def start(self, *words: object, **more: str) -> subprocess.Popen[str]:
        command = [str(COMMAND), *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.variables(**more), stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: object, **more: str) -> Done:
        """Run a command to completion."""
        return finished(self.start(*words, **more))

    def log_in(self, *words: object, **more: str) -> Done:
        """Log in with the browser, which must succeed."""
        self.opened.unlink(missing_ok=True)
        running = self.start("login", *words, **more)
        until(lambda: self.opened.exists() or running.poll() is not None)
        assert self.opened.exists(), running.communicate()
        with self.page() as page:
            agree(page, self.opened.read_text())
            page.wait_for_url("**/callback?**")
            assert "you can close this window" in page.inner_text("body")
        done = finished(running)
        assert done.returncode == 0, done.stderr
        return done

    def page(self) -> Page:
        """Return a page in a new browser context without a login."""
        return self.browser.new_context().new_page()

    def tokens(self) -> list[str]:
        """Return all secrets in the store."""
        records = [json.loads(path.read_text())["record"] for path in self.store.glob("*.json")]
        names = ("access_token", "refresh_token", "secret", "clientSecret")
        return [record[name] for record in records for name in names if record.get(name)]


@pytest.fixture
def user(tmp_path: Path, browser: Browser) -> User:
    (tmp_path / "home").mkdir()
    return User(tmp_path / "home", browser)


def finished(running: subprocess.Popen[str]) -> Done:
    out, err = running.communicate(timeout=60)
    return Done(running.args, running.returncode, out, err)


def until(holds: object) -> None:
    """Wait until a condition is true."""
    assert callable(holds)
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def agree(page: Page, url: str) -> None:
    """Log in as alice and consent to the client's request."""
    page.goto(url)
    page.fill("[name=login]", "alice")
    page.fill("[name=password]", "any")
    page.click("[type=submit]")
    page.click("[type=submit]")


def refused(done: Done, words: str) -> None:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert words in done.stderr


# --- in a browser -------------------------------------------------------------------------------------------------


def test_a_user_logs_in_steps_up_and_logs_out(user: User, issuer: str, example: Protected, tmp_path: Path) -> None:
    url = example.url
    refused(user.run("call", url, "tools/call", "whoami"), f"run: mcp-bindgen login {url}\n")
    done = user.log_in(url)
    assert done.stdout.startswith(f"Logged in to {url} at {issuer} with mcp:read")
    shown = [done, user.run("call", url, "tools/call", "whoami")]
    assert shown[-1].stdout == "alice\n"
    shown.append(user.run("call", url, "tools/call", "delete"))
    refused(shown[-1], f"run: mcp-bindgen login {url} --scope 'mcp:read mcp:write'\n")
    shown.append(user.log_in(url, "--scope", "mcp:read mcp:write"))
    shown.append(user.run("call", url, "tools/call", "delete", "--verbose"))
    assert shown[-1].stdout == "deleted\n"
    shown.append(user.run("auth", "list", "--json"))
    (grant,) = (one for one in json.loads(shown[-1].stdout) if one["server"] == url)
    assert (grant["issuer"], grant["refreshable"]) == (issuer, True)
    assert set(grant["scopes"]) == {"mcp:read", "mcp:write"}

    kept = [json.loads(path.read_text())["record"] for path in user.store.glob("*.json")]
    (used,) = (record for record in kept if "refresh_token" in record)
    secrets = user.tokens()
    assert len(secrets) >= 2
    shutil.copytree(user.store, tmp_path / "stolen")
    shown.append(user.run("logout", url))
    assert (shown[-1].returncode, shown[-1].stdout) == (0, f"Logged out of {url}.\n"), shown[-1].stderr
    form = {"grant_type": "refresh_token", "refresh_token": used["refresh_token"], "client_id": used["client_id"]}
    with httpx2.Client(trust_env=False) as http:
        answer = http.post(f"{issuer}/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert not [secret for one in shown for secret in secrets if secret in one.stdout + one.stderr]


def test_concurrent_processes_share_one_refresh(user: User, example: Protected) -> None:
    user.log_in(example.url)
    before = set(user.tokens())
    for path in user.store.glob("*.json"):
        document = json.loads(path.read_text())
        if "refresh_token" in document["record"]:
            document["record"]["expires_at"] = time.time() - 1
            path.write_text(json.dumps(document))
    calls = [user.start("call", example.url, "tools/call", "whoami") for _ in range(3)]
    assert [finished(one).stdout for one in calls] == ["alice\n"] * 3
    after = set(user.tokens())
    assert len(after - before) == len(before - after) == 2  # one refresh; reuse would revoke the grant
    assert user.run("call", example.url, "tools/call", "whoami").stdout == "alice\n"
    assert FileStore(user.store).folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in user.store.iterdir()} == {0o600}


def test_a_registered_client_logs_in_with_a_secret_and_a_fixed_redirect_uri(user: User, example: Protected) -> None:
    options = ("--client-id", "desk", "--redirect-uri", "http://localhost:8099/callback")
    user.log_in(example.url, *options, MCP_BINDGEN_CLIENT_SECRET=SECRET)
    called = user.run("call", example.url, "tools/call", "whoami")
    assert called.stdout == "alice\n"
    out = user.run("logout", "--all")
    assert (out.returncode, out.stdout) == (0, "Logged out of all servers.\n"), out.stderr
    assert not list(user.store.glob("*.json"))


# --- on a terminal ------------------------------------------------------------------------------------------------


class Terminal:
    """Command on a terminal of its own.

    Attributes:
        seen: The output so far.
    """

    def __init__(self, user: User, *words: object) -> None:
        self.seen = ""
        variables = user.variables(COLUMNS="200")
        self._process, self._file = pty.fork()
        if self._process == 0:
            os.execve(COMMAND, [str(COMMAND), *map(str, words)], variables)

    def read(self, pattern: str) -> str:
        """Wait for output that matches a pattern; return its first group."""
        end = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.seen)) is None:
            assert time.monotonic() < end, self.seen
            self._more()
        return found[1]

    def write(self, text: str) -> None:
        os.write(self._file, text.encode())

    def _more(self) -> bool:
        if not select.select([self._file], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._file, 4096)
        except OSError:  # the command has ended
            return False
        self.seen += data.decode()
        return bool(data)

    def end(self) -> int:
        """Wait until the command ends; return its exit code."""
        end = time.monotonic() + PATIENCE
        while self._more():
            if time.monotonic() > end:
                os.kill(self._process, signal.SIGKILL)
        os.close(self._file)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, issuer: str) -> Iterator[str]:
    """Run a server and an authorization server without device codes; yield the server's URL."""
    auth, port, logs = free_port(), free_port(), tmp_path_factory.mktemp("elsewhere")
    command = [PYTHON, EXAMPLE, "--port", port, "--issuer", f"http://127.0.0.1:{auth}"]
    server = [node(), HERE / "authorization_server.mjs", auth]
    with process(server, auth, logs / "issuer", DEVICE="0"), process(command, port, logs / "example"):
        yield f"http://127.0.0.1:{port}/mcp"


def test_without_a_browser_the_user_pastes_the_callback_address(user: User, elsewhere: str) -> None:
    terminal = Terminal(user, "login", elsewhere, "--no-browser", "--port", "8098")
    url = terminal.read(r"(http://\S+)\r\n.*The address: ")
    assert not user.opened.exists()
    with user.page() as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        agree(page, url)
        page.wait_for_timeout(100)
        until(lambda: [one for one in asked if "/callback?" in one])
    (back,) = {one for one in asked if "/callback?" in one}
    assert parse_qs(urlsplit(url).query)["redirect_uri"] == ["http://127.0.0.1:8098/callback"]
    terminal.write("http://127.0.0.1:8098/callback?code=guessed&state=guessed\n")
    terminal.read(r"(That is not the address)")
    terminal.write(f"{back}\n")
    assert terminal.end() == 0, terminal.seen
    assert f"Logged in to {elsewhere}" in terminal.seen
    assert user.run("call", elsewhere, "tools/call", "whoami").stdout == "alice\n"


def test_a_login_can_be_interrupted(user: User, elsewhere: str) -> None:
    terminal = Terminal(user, "login", elsewhere, "--no-browser")
    terminal.read(r"(The address: )")
    terminal.write("\x03")
    assert terminal.end() == 130, terminal.seen
    assert "Traceback" not in terminal.seen
    assert not user.tokens()


def test_without_a_browser_the_user_logs_in_with_a_device_code(user: User, example: Protected) -> None:
    running = user.start("login", example.url, "--no-browser")
    assert running.stderr is not None
    told = "".join(running.stderr.readline() for _ in range(3))
    found, code = re.search(r"visit (http\S+)\s", told), re.search(r"enter (\S+)", told)
    assert found is not None, told
    assert code is not None, told
    with user.page() as page:
        page.goto(found[1])
        if page.locator("[name=user_code]").is_visible():
            page.fill("[name=user_code]", code[1])
        page.click("[type=submit]")
        page.fill("[name=login]", "alice")
        page.fill("[name=password]", "any")
        page.click("[type=submit]")
        page.click("[type=submit]")
        page.wait_for_load_state()
        done = finished(running)
    assert done.returncode == 0, told + done.stderr
    assert user.run("call", example.url, "tools/call", "whoami").stdout == "alice\n"
