"""`mcp-bindgen login`, `logout` and `auth list`, and how other commands use a login."""

from __future__ import annotations

import json
import shlex
import shutil
import webbrowser
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.auth.store import FileStore, Key, default_folder
from tests.harness import file_server
from tests.harness.authorization_world import SECRET
from tests.harness.commands import Done, answered, complaint, inside, save
from tests.harness.guarded import Browser, Guarded, guarded

FILES = "mcp:read mcp:write"


@pytest.fixture(scope="module")
def servers() -> Iterator[Guarded]:
    with guarded() as found:
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the token folder of a user without logins."""
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("MCP_BINDGEN_CLIENT_ID", "MCP_BINDGEN_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return default_folder()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    found = Browser()
    monkeypatch.setattr(webbrowser, "open", found.open)
    return found


@pytest.fixture
def login(servers: Guarded, browser: Browser) -> Callable[..., Done]:
    """Return a function that logs in, which must succeed."""

    def log_in(*options: object) -> Done:
        return inside("login", servers.url, *options, code=0)

    return log_in


def whoami(servers: Guarded) -> Done:
    return inside("call", servers.url, "tools/call", "whoami")


def kept() -> list[dict[str, Any]]:
    """Return the entries of `auth list --json`."""
    found: list[dict[str, Any]] = json.loads(answered("auth", "list", "--json"))
    return found


# --- the usual login ------------------------------------------------------------------------------------------


def test_an_error_about_a_missing_login_contains_the_login_command(servers: Guarded, tmp_path: Path) -> None:
    line = complaint("call", servers.url, "tools/call", "whoami")
    assert line == f"error: {servers.url} wants a login; run: mcp-bindgen login {servers.url}"
    out = tmp_path / "out.py"
    for words in (("contract", "export", servers.url), ("client", "--from", servers.url, "--out", out)):
        assert complaint(*words).endswith(f"run: mcp-bindgen login {servers.url}")
    file = save(tmp_path / "my file.json", {"mcpServers": {"a b": {"url": servers.url}}})
    line = complaint("call", f"{file}#a b")
    assert shlex.split(line.partition("run: ")[2]) == ["mcp-bindgen", "login", f"{file}#a b"]


def test_commands_use_the_login_until_the_logout(
    servers: Guarded, login: Callable[..., Done], browser: Browser, home: Path, tmp_path: Path
) -> None:
    world, asked = servers.world, len(servers.world.queries)
    done = login()
    assert done.stdout.startswith(f"Logged in to {servers.url} at {world.issuer} with mcp:read, renewed automatically")
    assert browser.visited[0] in done.stderr
    assert whoami(servers).stdout == "ada\n"
    assert inside("contract", "export", servers.url).returncode == 0
    assert inside("client", "--from", servers.url, "--out", tmp_path / "c.py").returncode == 0

    world.tokens.clear()  # invalidates the access token; the refresh token still works
    assert whoami(servers).stdout == "ada\n"
    assert len(world.queries) == asked + 1

    (client, grant) = kept()
    assert client == {**dict.fromkeys(grant), **client, "server": None, "issuer": world.issuer, "scopes": []}
    assert (grant["server"], grant["issuer"], grant["scopes"]) == (servers.url, world.issuer, ["mcp:read"])
    assert grant["refreshable"] is True
    assert grant["expires"] > "2026"
    listed = inside("auth", "list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["SERVER", "-", servers.url]

    shutil.copytree(home, tmp_path / "stolen")
    out = inside("logout", servers.url)
    assert (out.returncode, out.stdout, out.stderr) == (0, f"Logged out of {servers.url}.\n", "")
    assert {form["token_type_hint"] for form in world.forms[-2:]} == {"refresh_token", "access_token"}
    complaint("call", servers.url, "tools/call", "whoami")
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "stolen", home)
    complaint("call", servers.url, "tools/call", "whoami")  # logout has revoked both tokens

    for shown in (done, listed, out):
        assert not any(secret in shown.stdout + shown.stderr for secret in [*servers.secrets(), SECRET])


def test_a_logout_without_a_login_succeeds_and_reports_it(servers: Guarded) -> None:
    done = inside("logout", servers.url)
    assert (done.returncode, done.stdout) == (0, f"There is no login to {servers.url}.\n")
    assert "secret" not in inside("logout", f"{servers.url}#secret").stdout
    done = inside("auth", "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no logins.\n")
    assert kept() == []


def test_logout_all_deletes_every_login(login: Callable[..., Done], servers: Guarded, home: Path) -> None:
    login("--issuer", servers.world.issuer)
    done = inside("logout", "--all")
    assert (done.returncode, done.stdout) == (0, "Logged out of all servers.\n")
    assert kept() == []
    assert not list(home.glob("*.json"))


def test_an_error_about_a_missing_scope_contains_the_login_command(
    login: Callable[..., Done], servers: Guarded
) -> None:
    login()
    command = shlex.split(complaint("call", servers.url, "tools/call", "delete").partition("run: ")[2])
    assert command == ["mcp-bindgen", "login", servers.url, "--scope", FILES]
    login(*command[3:])
    assert inside("call", servers.url, "tools/call", "delete").stdout == "deleted\n"
    assert whoami(servers).stdout == "ada\n"


def test_the_shown_scopes_are_the_granted_ones(
    login: Callable[..., Done], servers: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers.world, "edit_token", lambda answer: {**answer, "scope": "mcp:read"})
    assert " with mcp:read, renewed" in login("--scope", FILES).stdout
    assert kept()[-1]["scopes"] == ["mcp:read"]


def test_a_failed_login_keeps_the_previous_login(
    login: Callable[..., Done], servers: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    login()
    refused = {"error": "access_denied", "error_description": "not\x1b[31m you"}
    monkeypatch.setattr(servers.world, "edit_response", lambda back: {**back, **refused})
    done = inside("login", servers.url)
    assert (done.returncode, done.stdout) == (2, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert "access_denied: not" in line
    assert "\x1b" not in line
    assert whoami(servers).stdout == "ada\n"


def test_a_login_that_cannot_open_a_browser_suggests_no_browser(
    servers: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    line = complaint("login", servers.url)
    assert line.endswith(f"no browser could be opened; run: mcp-bindgen login {servers.url} --no-browser")


@pytest.mark.parametrize(("place", "code"), [(None, 0), ("http://127.0.0.1:9/revoke", 1)])
def test_a_logout_warns_about_tokens_that_were_not_revoked(
    place: str | None, code: int, login: Callable[..., Done], servers: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    login()
    monkeypatch.setattr(servers.world, "edit_server", lambda document: {**document, "revocation_endpoint": place})
    done = inside("logout", servers.url)
    assert (done.returncode, done.stdout) == (code, f"Logged out of {servers.url}.\n")
    assert done.stderr.startswith("warning: deleted here, but not revoked: ")
    assert [one for one in kept() if one["server"]] == []


# --- registered clients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["environment", "file"])
def test_the_secret_of_a_client_comes_from_the_environment_or_a_file(
    way: str, login: Callable[..., Done], servers: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = f"hidden in the {way}"
    options: list[object] = ["--client-id", "desk", "--port", "8097"]
    if way == "file":
        (tmp_path / "secret").write_text(f"{secret}\n", "utf-8-sig")
        options += ["--client-secret-file", tmp_path / "secret"]
    else:
        monkeypatch.setenv("MCP_BINDGEN_CLIENT_SECRET", secret)
    done = login(*options)
    form = servers.world.forms[-1]
    assert (form["client_id"], form["client_secret"]) == ("desk", secret)
    assert form["redirect_uri"] == "http://127.0.0.1:8097/callback"
    monkeypatch.delenv("MCP_BINDGEN_CLIENT_SECRET", raising=False)
    servers.world.tokens.clear()
    called = whoami(servers)  # as the same client; the login stores its secret
    assert called.stdout == "ada\n"
    assert servers.world.forms[-1]["client_secret"] == secret
    listed = inside("auth", "list", "--json")
    assert [one["client"] for one in json.loads(listed.stdout)] == ["desk"]
    assert inside("logout", servers.url).returncode == 0
    assert servers.world.forms[-1]["client_secret"] == secret
    assert secret not in "".join(one.stdout + one.stderr for one in (done, called, listed))


def test_a_login_uses_the_client_and_scopes_of_the_configuration_entry(
    servers: Guarded, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_SECRET", "from the file's variable")
    auth = {"clientId": "desk", "clientSecret": "${DESK_SECRET}", "scopes": FILES.split()}
    file = save(tmp_path / "mcp.json", {"mcpServers": {"files": {"url": servers.url, "auth": auth}}})
    assert inside("login", f"{file}#files").returncode == 0
    assert servers.world.forms[-1]["client_secret"] == "from the file's variable"
    assert inside("call", f"{file}#files", "tools/call", "delete").stdout == "deleted\n"
    assert inside("call", servers.url, "tools/call", "delete").stdout == "deleted\n"
    assert inside("logout", f"{file}#files").returncode == 0
    assert complaint("call", f"{file}#files").endswith(f"run: mcp-bindgen login '{file}#files'")


# --- refused logins -------------------------------------------------------------------------------------------


def test_bad_input_is_refused_in_one_line(servers: Guarded, browser: Browser) -> None:
    for words, said in [
        (["python server.py"], "is a program, and logins need a URL; pass credentials with --env"),
        (["URL", "--port", "1", "--redirect-uri", "http://127.0.0.1:2/"], "exclude each other"),
        (["URL", "--redirect-uri", "https://example.com/cb"], '"redirectUri" must be like http://127.0.0.1:8765/'),
        (["URL", "--client-id", "a", "--client-metadata-url", "https://a.example/b"], "both identify the client"),
        (["URL", "--client-metadata-url", "http://a.example/b"], "client_metadata_url must be an https URL"),
        (["URL", "--client-secret-file", "/nonexistent", "--client-id", "a"], "/nonexistent: cannot be read"),
        (["URL", "--omit-resource"], 'for one "issuer": name it'),
        (["URL", "--ignore-final-slash"], 'for one "issuer": name it'),
        (["URL", "--issuer", "https://a.example"], "and this client is known to https://a.example"),
        (["URL", "--issuer", "https://[a", "--client-id", "a"], "an issuer in its settings, is malformed"),
        (["https://[::1"], "the URL of the server, or of an issuer"),
        (["https://a.example:99999/mcp"], "the URL of the server, or of an issuer"),
        (["http://example.com/mcp"], "tokens are only sent over https"),
        (["https://example.invalid/mcp"], "no answer from https://example.invalid/mcp"),
    ]:
        assert said in complaint("login", *(servers.url if word == "URL" else word for word in words))
        assert browser.visited == []


def test_servers_with_other_credentials_need_no_login(servers: Guarded, tmp_path: Path) -> None:
    entries = {
        "header": {"url": servers.url, "headers": {"Authorization": "Bearer x"}},
        "machine": {"url": servers.url, "auth": {"type": "bearer", "token": "x"}},
    }
    file = save(tmp_path / "mcp.json", {"mcpServers": entries})
    with_password = servers.url.replace("http://", "http://ada:hidden@")
    for one in (f"{file}#header", with_password):
        assert "contain credentials already" in complaint("login", one)
    assert "mcp-bindgen login" not in complaint("call", with_password)
    assert "uses bearer and needs no login" in complaint("login", f"{file}#machine")
    assert "name one of `mcp-bindgen auth list`, or give --all" in complaint("logout")
    assert "401" in complaint("call", f"{file}#machine")


def test_token_files_readable_by_other_users_are_not_used(
    login: Callable[..., Done], servers: Guarded, home: Path
) -> None:
    login()
    for file in home.glob("*.json"):
        file.chmod(0o644)
    assert "others can read it: chmod 600 it" in complaint("call", servers.url, "tools/call", "whoami")
    listed = inside("auth", "list", code=0)
    warnings = [line for line in listed.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == len(list(home.glob("*.json")))
    assert all("others can read it: chmod 600 it" in line for line in warnings)


def test_one_damaged_file_does_not_hide_the_other_logins(
    login: Callable[..., Done], servers: Guarded, home: Path
) -> None:
    login()
    before = answered("auth", "list")
    damaged = home / f"{'0' * 32}.json"
    damaged.write_text("{")
    damaged.chmod(0o600)
    warning = f"warning: {damaged} is damaged: delete it and log in again\n"
    listed = inside("auth", "list")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, before, warning)
    assert len(json.loads(inside("auth", "list", "--json").stdout)) == 2
    assert whoami(servers).returncode == 0
    done = inside("logout", "--all")
    assert (done.returncode, done.stdout, done.stderr) == (1, "Logged out of all servers.\n", warning)
    assert list(home.glob("*.json")) == [damaged]
    damaged.unlink()
    assert inside("logout", "--all").returncode == 0


@pytest.mark.parametrize("settings", [{"type": 7}, {"clientId": ["x"]}, {"nonsense": True}])
def test_a_login_with_damaged_settings_can_be_deleted(
    login: Callable[..., Done], servers: Guarded, home: Path, settings: dict[str, Any]
) -> None:
    login()
    (key,) = [key for key in anyio.run(FileStore(home).keys) if key.issuer == "login"]
    store = FileStore(home)
    anyio.run(store.replace, key, anyio.run(store.load, key), settings)
    unusable = partial(store.replace, Key("https://a.example", "https://b.example:x", "c"), None, {"access_token": "x"})
    anyio.run(unusable)
    assert "is damaged" in inside("logout", "--all", code=1).stderr
    assert not list(home.glob("*.json"))
    anyio.run(unusable)
    assert inside("logout", "--all", code=1).stdout == "There is no login to all servers.\n"


def test_auth_list_escapes_control_characters_and_hides_tokens(home: Path) -> None:
    nasty = "\x1b]0;owned\x07[bold]\n"
    issuer, resource = f"https://a.example/{nasty}", f"https://r.example/{nasty}"
    record: dict[str, Any] = {"issuer": issuer, "resource": resource, "client_id": nasty, "scopes": [nasty]}
    record |= {"access_token": "secret-token", "expires_at": 1.0}
    key = Key(issuer, resource, nasty)
    anyio.run(FileStore(home).replace, key, None, record)
    done = inside("auth", "list", code=0)
    assert len(done.stdout.splitlines()) == 2
    assert done.stdout.replace("\n", "").isprintable()
    assert "[bold]" in done.stdout
    assert "secret-token" not in done.stdout
    json.loads(inside("auth", "list", "--json").stdout)


def test_a_basic_authentication_challenge_does_not_suggest_a_login() -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers["content-length"]))
        handler.send_response(401)
        handler.send_header("www-authenticate", 'Basic realm="x"')
        handler.end_headers()

    with file_server.serving() as server:
        server.answers["/mcp"] = refuse
        line = complaint("call", server.url("/mcp"))
    assert "answered 401" in line
    assert "mcp-bindgen login" not in line
