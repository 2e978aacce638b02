"""Hosts and `connect` with servers that need authorization: configuration, logins, error messages."""

from __future__ import annotations

import json
import logging
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import anyio
import pytest
from anyio import to_thread

from mcp_bindgen.auth import Browser, Headless, Manual, OAuth, keyring_store
from mcp_bindgen.auth.store import MemoryStore
from mcp_bindgen.host import BadConfig, Host
from mcp_bindgen.host.authorization import AuthSettings, LoginNeeded
from mcp_bindgen.host.configuration import Entry, entry
from mcp_bindgen.host.configuration import entry as read_entry
from mcp_bindgen.host.logins import log_in
from mcp_bindgen.runtime import ConnectionClosed, connect
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2026_07_28 import Client as Stateless
from tests.harness.authorization_world import CALLBACK, agree, visit
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.guarded import Guarded, guarded
from tests.harness.processes import free_port

PROGRAM = {"clientId": "robot", "clientSecret": "${ROBOT}", "type": "client_credentials"}


@pytest.fixture(scope="module")
def servers() -> Iterator[Guarded]:
    with guarded() as found:
        yield found


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail each test that opens a browser."""
    monkeypatch.setattr(webbrowser, "open", pytest.fail)


async def slowly(url: str) -> str:
    """Agree to a login after 2.5 seconds, like a slow user."""
    await anyio.sleep(2.5)
    return await agree(url)


@pytest.fixture
def answer_token(servers: Guarded, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Let the token endpoint issue tokens for all grant types; return the list of received forms."""
    forms: list[dict[str, str]] = []

    def issue(form: dict[str, str], heard: Any) -> tuple[int, dict[str, Any]]:
        forms.append(form)
        if form["grant_type"].endswith("token-exchange"):
            kind = {"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"}
            return 200, {"access_token": "the-assertion", **kind}
        known(servers, f"issued-{len(forms)}", form["scope"])
        return 200, {"access_token": f"issued-{len(forms)}", "token_type": "Bearer"}

    monkeypatch.setattr(servers.world, "answer_token", issue)
    return forms


def known(servers: Guarded, token: str, scope: str = "mcp:read") -> None:
    """Register a valid token at the authorization server."""
    servers.world.families.add(0)
    servers.world.tokens[token] = {"scope": scope, "family": 0, "jkt": None, "client": "x"}


async def whoami(host: Host[Any], server: str = "a") -> str:
    """Call the tool `whoami` of a server; the server's list of tools is empty."""
    found: str = (await host.call_tool("whoami", server=server)).content[0].text
    return found


async def logged_in(servers: Guarded, store: MemoryStore, settings: AuthSettings | None = None) -> None:
    """Log in like `mcp-bindgen login`."""
    assert await log_in(Entry(url=servers.url), settings or AuthSettings(), Manual(agree, CALLBACK), store) is not None


# --- logins -----------------------------------------------------------------------------------------------------


async def test_a_host_reports_the_login_command_instead_of_asking_the_user(
    servers: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "my mcp.json"
    file.write_text(json.dumps({"mcpServers": {"files": {"url": servers.url}}}), "utf-8")
    store, asked = MemoryStore(), len(servers.world.queries)
    clients: Any = [Client, Stateless]
    async with Host.from_config(file, client=clients, store=store, restart_pause=0.01) as host:
        failure = host.failures["files"]
        assert isinstance(failure, LoginNeeded)
        assert failure.command == f"mcp-bindgen login '{file}#files'"
        assert str(failure) == f"{servers.url} wants a login; run: {failure.command}"
        assert str(failure) in caplog.text
        assert await host.tools() == []
        for _ in range(5):  # a missing login does not count as a crash, which would use up the restarts
            await refused(host.call_tool("whoami", server="files"), LoginNeeded)
        assert len(servers.world.queries) == asked
        await logged_in(servers, store)
        assert await whoami(host, "files") == "ada"  # without a restart of the host


async def test_a_login_may_take_longer_than_the_start_timeout_of_the_host(servers: Guarded) -> None:
    options: dict[str, Any] = {"store": MemoryStore(), "start_timeout": 2}
    async with Host({"a": {"url": servers.url}}, Client, login=Manual(slowly, CALLBACK), **options) as host:
        assert host.failures == {}
        assert await whoami(host) == "ada"
    async with Host({"a": {"url": servers.url}}, Client, **options) as host:
        assert await whoami(host) == "ada"  # from the store


async def test_a_slow_login_does_not_change_the_negotiated_revision(servers: Guarded) -> None:
    auth = OAuth(login=Manual(slowly, CALLBACK), store=MemoryStore())
    async with connect(servers.url, Client, Stateless, auth=auth, probe_timeout=1, timeout=2) as client:
        assert client.revision == "2026-07-28"


async def test_a_call_without_the_required_scopes_names_them_and_the_host_continues(servers: Guarded) -> None:
    store = MemoryStore()
    await logged_in(servers, store)
    async with Host({"a": {"url": servers.url}}, Stateless, store=store) as host:
        error = await refused(host.call_tool("delete", server="a"), LoginNeeded)
        assert error.command == f"mcp-bindgen login {servers.url} --scope 'mcp:read mcp:write'"
        assert await whoami(host) == "ada"
        await logged_in(servers, store, AuthSettings(scopes=("mcp:read", "mcp:write")))
        result: Any = await host.call_tool("delete", server="a")
        assert result.content[0].text == "deleted"


async def test_a_login_revoked_while_connected_is_reported_and_a_new_login_is_used(servers: Guarded) -> None:
    store = MemoryStore()
    await logged_in(servers, store)
    async with Host({"a": {"url": servers.url}}, Stateless, store=store) as host:
        assert await whoami(host) == "ada"
        servers.world.families.clear()  # the authorization server revokes all tokens
        await refused(whoami(host), LoginNeeded)
        await logged_in(servers, store)
        assert await whoami(host) == "ada"


# --- configuration ----------------------------------------------------------------------------------------------


async def test_client_credentials_authorize_a_host_without_a_user(
    servers: Guarded, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ROBOT", "secret-of-the-robot")
    auth = {**PROGRAM, "issuer": servers.world.issuer, "scopes": ["mcp:read"]}
    async with Host({"a": {"url": servers.url, "auth": auth}}, Client) as host:
        assert await whoami(host) == "ada"
    form = servers.world.forms[-1]
    said = (form["grant_type"], form["client_id"], form["client_secret"])
    assert said == ("client_credentials", "robot", "secret-of-the-robot")
    assert not any(secret in caplog.text for secret in ("secret-of-the-robot", *servers.secrets()))


async def test_a_bearer_token_is_read_from_the_environment(servers: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    known(servers, "key-123")
    monkeypatch.setenv("KEY", "key-123")
    given = {"url": servers.url, "auth": {"type": "bearer", "token": "${KEY}"}}
    async with Host({"a": given}, Client) as host:
        assert await whoami(host) == "ada"
    async with connect(Entry.read(given)) as client:
        assert (await client.call_tool("whoami")).content[0].text == "ada"
    assert "key-123" not in repr(entry("a", given))
    monkeypatch.setenv("KEY", "key-124")
    with pytest.raises(ConnectionClosed, match="401") as caught:
        async with connect(Entry.read(given)):
            pass
    assert "key-124" not in str(caught.value)


async def test_a_workload_sends_the_latest_token_of_its_platform(
    servers: Guarded, answer_token: list[dict[str, str]], tmp_path: Path
) -> None:
    file = tmp_path / "token"

    async def outcome(place: object = file) -> str:
        """Return the user of the token, or the error of the host."""
        auth = {"type": "workload_identity", "tokenFile": str(place), "issuer": servers.world.issuer}
        async with Host({"a": {"url": servers.url, "auth": auth}}, Client) as host:
            return str(host.failures["a"]) if host.failures else await whoami(host)

    assert (await outcome()).startswith(f"the token cannot be read from {file}: No such file")
    assert (await outcome("~nobody-of-this-name/token")).endswith("there is no such user")
    for written in (b"first.of.platform\n", b"second.of.platform"):
        file.write_bytes(written)
        assert await outcome() == "ada"
    for damaged in (b"", b"\xff" * 10, b"x" * 100_000):
        file.write_bytes(damaged)
        assert (await outcome()).endswith("it holds no token")
    assert [form["assertion"] for form in answer_token] == ["first.of.platform", "second.of.platform"]
    assert {form["grant_type"] for form in answer_token} == {"urn:ietf:params:oauth:grant-type:jwt-bearer"}
    assert {form["resource"] for form in answer_token} == {servers.url}


async def test_an_enterprise_identity_provider_authorizes_its_users(
    servers: Guarded, answer_token: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server is both identity provider and issuer here; the request forms tell the two roles apart."""
    monkeypatch.setenv("ID_TOKEN", "the.id.token")
    provider = {"provider": servers.world.issuer, "providerClientId": "desk", "providerClientSecret": "secret-there"}
    client = {"clientId": "desk-here", "issuer": servers.world.issuer}
    auth = {"type": "enterprise_managed", "token": "${ID_TOKEN}", **provider, **client}
    async with Host({"a": {"url": servers.url, "auth": auth}}, Client) as host:
        assert await whoami(host) == "ada"
    exchanged, granted = answer_token
    assert (exchanged["subject_token"], exchanged["client_id"]) == ("the.id.token", "desk")
    assert (exchanged["client_secret"], exchanged["audience"]) == ("secret-there", servers.world.issuer)
    assert exchanged["subject_token_type"] == "urn:ietf:params:oauth:token-type:id_token"
    assert (granted["assertion"], granted["client_id"]) == ("the-assertion", "desk-here")
    assert exchanged["resource"] == granted["resource"] == servers.url


async def test_connect_names_the_command_for_an_entry_that_needs_a_login(
    servers: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_store, "default_store", MemoryStore)
    with pytest.raises(LoginNeeded, match=f"mcp-bindgen login {servers.url} --client-id desk"):
        async with connect(Entry.read({"url": servers.url, "auth": {"clientId": "desk"}})):
            pass


async def test_a_token_is_not_sent_over_plain_http() -> None:
    async with Host({"a": {"url": "http://example.com/mcp", "auth": {"type": "bearer", "token": "x"}}}, Client) as host:
        assert isinstance(host.failures["a"], AuthorizationError)
        assert "only sent over https" in str(host.failures["a"])


TYPES = "oauth, client_credentials, workload_identity, enterprise_managed"
CREDENTIALS = {"type": "client_credentials", "clientId": "a"}
BAD: list[tuple[Any, str]] = [
    ("oauth", '"auth" must be an object'),
    ({"type": "oaut"}, f'"type" must be one of {TYPES}'),
    ({"type": ["oauth"]}, '"type" must be one of'),
    ({"clientID": "x"}, "'clientID' is no setting of the type oauth; there are clientId, clientSecret"),
    ({"token": "x"}, "'token' is no setting of the type oauth"),
    ({"clientId": 1}, '"clientId" must be text'),
    ({"clientId": ""}, '"clientId" must be text'),
    ({"scopes": "a b"}, '"scopes" must be a list of texts without spaces'),
    ({"scopes": ["a b"]}, '"scopes" must be a list of texts without spaces'),
    ({"dpop": "yes"}, '"dpop" must be true or false'),
    ({"clientSecret": "hidden"}, '"clientSecret" needs "clientId"'),
    ({"clientId": "a", "clientMetadataUrl": "b"}, "both identify the client"),
    ({"redirectUri": "https://example.com/cb"}, '"redirectUri" must be like'),
    ({"redirectUri": "http://127.0.0.1/cb"}, '"redirectUri" must be like'),
    ({"redirectUri": "http://127.0.0.1:x/cb"}, '"redirectUri" must be like'),
    ({"omitResource": True}, 'for one "issuer": name it'),
    ({"ignoreFinalSlash": True}, 'for one "issuer": name it'),
    ({"type": "bearer"}, 'the type bearer needs either "token" or "tokenFile"'),
    ({"type": "bearer", "token": "a", "tokenFile": "b"}, 'either "token" or "tokenFile"'),
    ({"type": "bearer", "token": "a", "provider": "b"}, "'provider' is no setting of the type bearer"),
    ({"type": "bearer", "token": "${NOT_SET_ANYWHERE}"}, "the environment variable NOT_SET_ANYWHERE"),
    ({"type": "workload_identity", "token": "hidden"}, 'needs "issuer"'),
    ({"type": "workload_identity", "issuer": "a"}, 'either "token" or "tokenFile"'),
    ({"type": "enterprise_managed", "token": "hidden"}, 'needs "provider"'),
    ({**CREDENTIALS, "issuer": "b", "clientSecret": "c", "privateKey": "d"}, 'either "clientSecret" or "privateKey"'),
    ({**CREDENTIALS, "clientSecret": "b"}, 'needs "issuer"'),
    ({**CREDENTIALS, "issuer": "b"}, 'either "clientSecret" or "privateKey"'),
    ({}, "two ways to be authorized"),
]


@each(("auth", "said"), BAD)
def test_invalid_auth_settings_are_refused_in_one_line(auth: Any, said: str) -> None:
    headers = {} if auth else {"headers": {"authorization": "Bearer x"}}
    with pytest.raises(BadConfig) as caught:
        read_entry("x", {"url": "https://example.com/mcp", "auth": auth, **headers})
    assert str(caught.value).startswith("server 'x': ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_credentials_in_an_entry_replace_a_login() -> None:
    url = "https://example.com/mcp"
    assert read_entry("x", {"url": url, "headers": {"Authorization": "Bearer x"}}).has_credentials
    assert read_entry("x", {"url": "https://ada:x@example.com/mcp"}).has_credentials
    assert not read_entry("x", {"url": url, "headers": {"X-Trace": "x"}}).has_credentials


def test_auth_settings_of_a_program_are_refused() -> None:
    with pytest.raises(BadConfig, match='"auth" is for URLs; a program takes its credentials from "env"'):
        read_entry("x", {"command": "x", "auth": {}})


@pytest.mark.parametrize("place", ["http://localhost:PORT/cb", "http://127.0.0.1:PORT"])
async def test_a_configured_redirect_uri_is_used_with_and_without_a_browser(servers: Guarded, place: str) -> None:
    shown: list[str] = []

    async def paste(prompt: str) -> str:
        return await to_thread.run_sync(visit, shown[-1].splitlines()[-1])

    def open_(url: str) -> bool:
        threading.Thread(target=lambda: urlopen(visit(url)).close()).start()
        return True

    uri = place.replace("PORT", str(free_port()))
    settings = AuthSettings(client_id="a", redirect_uri=uri)
    for login in (Headless(shown.append, paste), Browser(open=open_)):
        assert await log_in(Entry(url=servers.url), settings, login, MemoryStore())
        assert servers.world.queries[-1]["redirect_uri"] == uri


SECRETS: dict[str, Any] = {"client_id": "a", "client_secret": "hidden", "issuer": "c"}
PROVIDER: dict[str, Any] = {"provider": "e", "provider_client_id": "f", "provider_client_secret": "hidden"}


@each(
    "settings",
    [
        AuthSettings(),
        AuthSettings(redirect_uri="http://localhost:1/c", scopes=("e",), **SECRETS),
        AuthSettings(client_metadata_url="https://a.example/b", dpop=False),
        AuthSettings(issuer="a", omit_resource=True, assume_pkce=True, ignore_final_slash=True, scopes=()),
        AuthSettings("client_credentials", client_id="a", private_key="hidden", issuer="c", dpop=True),
        AuthSettings("bearer", token="hidden"),
        AuthSettings("bearer", token_file="a"),
        AuthSettings("workload_identity", token_file="a", issuer="c"),
        AuthSettings("workload_identity", token="hidden", **SECRETS),
        AuthSettings("enterprise_managed", token="hidden", token_type="d", client_id="a", issuer="c", **PROVIDER),
    ],
)
def test_written_settings_are_read_back_unchanged(settings: AuthSettings) -> None:
    assert AuthSettings.read(json.loads(json.dumps(settings.written()))) == settings
    assert "hidden" not in repr(settings)
