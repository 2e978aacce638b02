"""Use of tokens: fresh, with enough scopes, bound to a key, sent to their server only, and without endless retries."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from mcp_bindgen.auth import (
    Bearer,
    ClientCredentials,
    ClientSecret,
    EnterpriseManaged,
    KnownClient,
    Manual,
    PrivateKeyJwt,
    ServerQuirks,
    WorkloadIdentity,
)
from mcp_bindgen.auth.client import authorizer
from mcp_bindgen.auth.client.clients import load_client, read_registration
from mcp_bindgen.auth.client.login import device_code
from mcp_bindgen.auth.client.tokens import Endpoints, Grant, TokenRequest
from mcp_bindgen.auth.fetch import Fetched, Fetcher
from mcp_bindgen.auth.metadata import ServerMetadata
from mcp_bindgen.auth.store import FileStore, MemoryStore, put
from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, Refused
from tests.harness.authorization_world import CALLBACK, SECRET, World, call, oauth, slowly
from tests.harness.commands import ROOT
from tests.harness.effort import each
from tests.harness.scripted_http_server import Heard, eventually

Passes = Callable[[float], None]


# --- refreshing -----------------------------------------------------------------------------------------------


async def test_a_token_is_refreshed_before_it_expires_once_for_all_requests(given: World, passes: Passes) -> None:
    auth = oauth()
    await call(given.url, auth)
    passes(3600)
    refused = given.counts("POST /mcp")
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call, given.url, auth)
    assert given.counts("token refresh_token") == 1
    assert given.counts("POST /mcp") - refused == 20  # no request used the expired token


async def test_huge_numbers_in_server_responses_cause_no_error(given: World) -> None:
    given.edit_token = lambda answer: {**answer, "expires_in": 10**400}
    await given.let_in(oauth())
    server = ServerMetadata("https://example.org", "https://example.org/token")
    answer = {"client_id": "a", "client_secret": SECRET, "client_secret_expires_at": 10**400}
    record = read_registration(server, Fetched(201, {}, answer), None, "client_secret_post")
    assert record["until"] is not None
    client = load_client(server.issuer, json.loads(json.dumps(record)))
    assert client == ClientSecret("a", server.issuer, secret=SECRET, method="client_secret_post")
    told = {"verification_uri": "https://example.org/device", "user_code": "AB", "device_code": "secret"}
    code, _, pause = device_code({**told, "interval": 10**400, "expires_in": 10**400})
    assert (code.seconds, pause) == (3600, 60)


@each(
    ("told", "lives"),
    [
        *((None, None), (True, None), ([], None), ({"a": 1}, None)),
        *((told, None) for told in (0, -1, 10**400, float("nan"), "nan", "soon", "")),
        *((told, 3650 * 86400) for told in (1e308, float("inf"), "1e999")),
        *((told, 3600) for told in (3600, 3600.0, "3600")),
    ],
)
def test_an_implausible_token_lifetime_is_ignored_or_limited(told: Any, lives: float | None) -> None:
    server = ServerMetadata("https://example.org", "https://example.org/token")
    answer = {"access_token": "at", "token_type": "bearer", "expires_in": told}
    wanted = TokenRequest(server, "r", (), None, False, ServerQuirks(), Endpoints(Fetcher()))
    grant = wanted.grant(answer, KnownClient("c"))
    assert not grant.is_expired
    assert grant.is_fresh
    assert (None if grant.expires_at is None else round(grant.expires_at - grant.issued_at)) == lives
    assert Grant.load(json.loads(json.dumps(grant.dump()))) == grant


DAMAGE: dict[str, list[Any]] = {"expires_at": ["soon", float("nan"), 1e300], "issued_at": [None, -1]}
DAMAGE |= {"scopes": [[1], None], "access_token": [None], "refresh_token": [1], "key": [{}], "more": [1]}


@each(("member", "value"), [(name, value) for name, values in DAMAGE.items() for value in values])
def test_a_damaged_stored_grant_is_ignored(member: str, value: Any) -> None:
    grant = Grant("https://issuer", "https://resource", "client", "token", issued_at=1.0)
    assert Grant.load(grant.dump()) == grant
    assert Grant.load({**grant.dump(), member: value}) is None


@pytest.mark.parametrize("is_refreshable", [False, True])
async def test_an_expired_token_without_a_valid_refresh_token_causes_a_login(
    given: World, passes: Passes, is_refreshable: bool
) -> None:
    """Try without a refresh token, and with a refresh token that is no longer valid."""
    dropped = set() if is_refreshable else {"refresh_token"}
    given.edit_token = lambda answer: {name: answer[name] for name in answer.keys() - dropped}
    store = MemoryStore()
    auth = oauth(store)
    await call(given.url, auth)
    for again in (auth, oauth(store)):  # the same process, and a restarted process
        passes(3600)
        given.refreshes.clear()
        logins = given.counts("GET /authorize")
        await given.let_in(again)
        assert given.counts("GET /authorize") == logins + 1


async def test_a_running_request_does_not_block_a_token_refresh(given: World) -> None:
    """The lock covers the refresh only: a running request does not block other requests."""
    begun, held, auth = anyio.Event(), anyio.Event(), oauth()
    await call(given.url, auth)

    async def slowly(heard: Heard) -> None:
        if b"slow" in heard.body:
            begun.set()
            await held.wait()
        await given.serve(heard)

    given.answer_mcp = slowly
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, given.url, auth, "slow")
        await begun.wait()
        given.tokens.clear()
        await given.let_in(auth)
        assert given.counts("token refresh_token") == 1
        held.set()


@pytest.mark.full
@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_temporary_refresh_error_keeps_the_stored_tokens(given: World, status: int) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    kept = [await store.load(key) for key in await store.keys()]
    given.answer_token = lambda form, heard: (status, {"error": "server_error"})
    assert (await given.denied(oauth(store))).is_temporary
    assert [await store.load(key) for key in await store.keys()] == kept
    given.answer_token = lambda form, heard: None
    await given.let_in(oauth(store, login=None))


async def test_a_refused_secret_keeps_the_refresh_token_until_it_is_corrected(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store, client=ClientSecret("known", secret=SECRET)))
    given.tokens.clear()
    refusal = (401, {"error": "invalid_client"})
    given.answer_token = lambda form, heard: None if form["client_secret"] == SECRET else refusal
    await given.denied(oauth(store, client=ClientSecret("known", secret="wrong"), login=None), "no user may be asked")
    await given.let_in(oauth(store, client=ClientSecret("known", secret=SECRET), login=None))


async def test_a_valid_token_is_used_when_its_early_refresh_fails(given: World, passes: Passes) -> None:
    auth = oauth()
    first = await call(given.url, auth)
    given.answer_token = lambda form, heard: (503, {})
    passes(3590)
    assert (await call(given.url, auth), given.counts("token refresh_token")) == (first, 1)


async def test_a_cancelled_refresh_does_not_lose_the_refresh_token(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    given.edit_token = late
    with anyio.move_on_after(0.15):
        await call(given.url, oauth(store, login=None))
    given.edit_token = lambda answer: answer
    await given.let_in(oauth(store, login=None))
    assert given.families


async def test_a_refresh_does_not_overwrite_a_login_of_another_process(given: World) -> None:
    store, elsewhere = MemoryStore(), MemoryStore()
    await call(given.url, oauth(store))
    await call(given.url, oauth(elsewhere))
    (key,) = [one for one in await store.keys() if one.resource and one.issuer]
    play = given.issuing.play

    async def log_in_meanwhile(heard: Heard) -> None:
        if heard.path == "/token":
            await put(store, key, await elsewhere.load(key))
        await play(heard)

    given.tokens.clear()
    given.issuing.play = log_in_meanwhile
    await call(given.url, oauth(store, login=None))
    assert await store.load(key) == await elsewhere.load(key)


def late(answer: dict[str, Any]) -> dict[str, Any]:
    """Delay the response until the caller has left."""
    time.sleep(0.3)
    return answer


PROGRAM = """\
import sys
import anyio
from mcp_bindgen.auth import Manual
from mcp_bindgen.auth.store import FileStore
from tests.harness.authorization_world import CALLBACK, agree, call, oauth

async def visit(url):
    print("visits", flush=True)
    await anyio.sleep(0.5)
    return await agree(url)

async def main(url, folder, may_ask):
    auth = oauth(FileStore(folder), login=Manual(visit, CALLBACK) if may_ask else None)
    print("ready", flush=True)
    sys.stdin.readline()
    print(*await call(url, auth), flush=True)

anyio.run(main, *sys.argv[1:])
"""


async def printed(count: int, *arguments: object) -> list[list[str]]:
    """Return the output lines of `count` processes that send a request at the same time."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [await asyncio.create_subprocess_exec(*command, cwd=ROOT, **pipes) for _ in range(count)]
    for child in children:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
    return [(await child.communicate())[0].decode().splitlines() for child in children]


@pytest.mark.full
async def test_processes_that_refresh_at_once_use_a_rotating_token_once(given: World, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    await call(given.url, oauth(FileStore(folder)))
    given.tokens.clear()
    outputs = await printed(3, given.url, folder, "")
    assert {one[0][:3] for one in outputs} == {"at-"}, outputs
    assert given.counts("token refresh_token") == 1
    assert given.families  # no refresh token was used twice


@pytest.mark.full
async def test_processes_that_need_a_login_at_once_ask_the_user_once(given: World, tmp_path: Path) -> None:
    outputs = await printed(2, given.url, tmp_path / "kept", "yes")
    assert sorted(len(lines) for lines in outputs) == [1, 2], outputs
    assert len({lines[-1] for lines in outputs}) == 1
    assert given.counts("GET /authorize") == given.counts("POST /register") == 1


@pytest.mark.parametrize("ending", ["fails", "stays"])
async def test_a_failed_or_slow_login_of_another_process_is_replaced(
    given: World, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The user of the other process declines, or does not respond."""
    monkeypatch.setattr(authorizer, "_LOGIN_NOTICE_SECONDS", 0.1)
    monkeypatch.setattr(authorizer, "_LOGIN_WAIT_SECONDS", 60.0 if ending == "fails" else 0.3)
    store, leaves = FileStore(tmp_path / "kept"), anyio.Event()

    async def refuse(url: str) -> str:
        await leaves.wait()
        raise AuthorizationError("no")

    async def first() -> None:
        assert str(await given.denied(oauth(FileStore(store.folder), login=Manual(refuse, CALLBACK)))) == "no"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await eventually(lambda: list(store.folder.glob("*.lock")) and given.registered)
        no_user = oauth(FileStore(store.folder), login=None)  # does not wait
        await given.denied(no_user, "no user may be asked")
        if ending == "fails":
            asyncio.get_running_loop().call_later(0.3, leaves.set)
        await given.let_in(oauth(store))
        leaves.set()
    assert [one for one in caplog.messages if "another program has the user log in" in one]


# --- step-up --------------------------------------------------------------------------------------------------


async def test_a_step_up_requests_granted_and_new_scopes(given: World) -> None:
    given.challenge = {"scope": "read"}
    given.scopes_of = {"write": {"write"}, "both": {"read", "write"}}
    tokens = await call(given.url, oauth(), "list", "write", "both", "list")
    assert [query["scope"] for query in given.queries] == ["read", "read write"]
    assert tokens[1] == tokens[2] == tokens[3] != tokens[0]


@pytest.mark.parametrize("wanted", ["admin", None])
async def test_endless_step_up_challenges_end_with_an_error(given: World, wanted: str | None) -> None:
    """The server answers 403 forever, with the same scope or a new scope each time."""

    async def never(heard: Heard) -> None:
        if "authorization" not in heard.headers:
            await given.refuse(heard, 401)
        else:
            await given.refuse(heard, 403, error="insufficient_scope", scope=wanted or f"scope-{len(given.log)}")

    given.answer_mcp = never
    (error,) = await call(given.url, oauth())
    assert isinstance(error, Refused)
    assert error.status == 403
    assert given.counts("GET /authorize") <= 3


async def test_scopes_beyond_the_limit_are_not_requested(given: World) -> None:
    given.challenge = {"scope": "read"}
    given.scopes_of = {"write": {"write"}}
    found = await call(given.url, oauth(limit=["read"]), "list", "write")
    assert str(found[0]).startswith("at-")
    assert "beyond the limit: write" in str(found[1])
    assert given.counts("GET /authorize") == 1


async def test_a_challenge_with_too_many_scopes_is_refused(given: World) -> None:
    given.challenge = {"scope": " ".join(f"s{number}" for number in range(500))}
    await given.denied(oauth(), "more than 100 scopes")


# --- endless loops --------------------------------------------------------------------------------------------


async def test_a_server_that_refuses_every_token_causes_only_one_login(given: World) -> None:
    async def never(heard: Heard) -> None:
        await given.refuse(heard, 401, error="invalid_token")

    given.answer_mcp = never
    assert all(isinstance(error, AuthorizationError) for error in await call(given.url, oauth(), "a", "b", "c"))
    assert given.counts("GET /authorize") == 1
    assert given.counts("POST /mcp") < 10


async def test_retries_with_new_nonces_are_limited(given: World) -> None:
    async def never(heard: Heard) -> None:
        if "authorization" not in heard.headers:
            await given.refuse(heard, 401)
        else:
            await heard.end(401, www_authenticate='DPoP error="use_dpop_nonce"', dpop_nonce=f"nonce-{len(given.log)}")

    given.answer_mcp = never
    (error,) = await call(given.url, oauth(dpop=True))
    assert isinstance(error, Refused)
    assert given.counts("POST /mcp") < 6

    def another(form: dict[str, str], heard: Heard) -> tuple[int, dict[str, Any]]:
        given.nonce = f"n-{len(given.log)}"
        return 400, {"error": "use_dpop_nonce"}

    given.answer_mcp, given.answer_token = None, another
    asked = given.counts("token ")
    await given.denied(oauth(dpop=True))
    assert given.counts("token ") - asked < 5


# --- bound tokens ---------------------------------------------------------------------------------------------


async def test_bound_tokens_use_nonces_of_both_servers_and_survive_a_restart(given: World) -> None:
    given.nonce = "nonce-1"
    store = MemoryStore()
    auth = oauth(store, dpop=True)
    assert auth.authorizer(given.url).extensions == {"io.modelcontextprotocol/auth/dpop": {}}
    found = await call(given.url, auth, "a", "b")
    assert found[0] == found[1]
    given.nonce = "nonce-2"
    assert await call(given.url, auth) == found[:1]
    given.tokens.clear()
    renewed = await given.let_in(oauth(store, dpop=True, login=None))
    assert given.queries[0]["dpop_jkt"] == given.tokens[renewed]["jkt"] is not None


async def test_concurrent_requests_with_an_old_nonce_keep_their_token(given: World) -> None:
    given.nonce = "nonce-1"
    auth = oauth(dpop=True)
    await call(given.url, auth)
    given.nonce = "nonce-2"
    heard_all, heard_before = anyio.Event(), given.counts("POST /mcp")

    async def together(heard: Heard) -> None:
        if given.counts("POST /mcp") == heard_before + 3:
            heard_all.set()
        await heard_all.wait()
        await given.serve(heard)

    given.answer_mcp = together
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call, given.url, auth)
    assert (given.counts("token refresh_token"), given.counts("POST /mcp") - heard_before) == (0, 6)


async def test_an_unbound_token_is_refused_if_dpop_is_required(given: World) -> None:
    given.edit_token = lambda answer: answer | {"token_type": "Bearer"}
    await given.denied(oauth(dpop=True), "not bound to our key")


async def test_tokens_are_bound_automatically_if_both_servers_support_it(given: World) -> None:
    given.edit_resource = lambda document: document | {"dpop_signing_alg_values_supported": ["ES256"]}
    assert given.tokens[await given.let_in(oauth())]["jkt"] is not None


# --- recipients of tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_token_does_not_follow_a_redirect_to_another_server(given: World, other: World, status: int) -> None:
    auth = oauth()
    await call(given.url, auth)
    given.answer_mcp = lambda heard: heard.end(status, location=other.url)
    (error,) = await call(given.url, auth)
    assert isinstance(error, Refused)
    assert other.log == []


async def test_sse_authorizes_each_message_and_a_refusal_ends_one_request(given: World) -> None:
    """HTTP+SSE also sends the token with each request, waits for the user, and requests more scopes."""
    shown, streams = list[str](), list[Heard]()

    async def old(heard: Heard) -> None:
        shown.append(f"{heard.method} {heard.headers.get('authorization', '')}")
        known = given.tokens.get(heard.headers.get("authorization", "").removeprefix("Bearer "))
        if known is None:
            await given.refuse(heard, 401)
        elif heard.method == "GET":
            await heard.begin(200, "text/event-stream")
            await heard.write(b"event: endpoint\ndata: /mcp\n\n")
            streams.append(heard)
            await heard.until_gone()
        elif b"admin" in heard.body:
            await given.refuse(heard, 403, error="insufficient_scope", scope="admin")
        elif b"write" in heard.body and "write" not in known["scope"]:
            await given.refuse(heard, 403, error="insufficient_scope", scope="write")
        else:
            await heard.end(202)
            answer = {"jsonrpc": "2.0", "id": heard.id, "result": known["scope"]}
            await streams[-1].write(f"data: {json.dumps(answer)}\n\n".encode())

    given.answer_mcp = old
    auth = oauth(limit=["write"], login=slowly(2))
    assert await call(given.url, auth, "list", "write", opened=sse, timeout=1.5) == ["", "write"]
    found = await call(given.url, auth, "admin", "list", opened=sse, timeout=1.5)
    assert isinstance(found[0], AuthorizationError)
    assert (found[1], [line.partition(" ")[0] for line in shown if line.endswith(" ")]) == ("write", ["GET"])


def test_tokens_are_sent_over_https_or_to_this_machine() -> None:
    for auth in (oauth(), Bearer("token"), ClientCredentials(ClientSecret("id", secret=SECRET))):
        with pytest.raises(AuthorizationError, match="only sent over https"):
            auth.authorizer("http://a.example/mcp")


async def test_a_token_for_a_local_server_does_not_pass_through_a_proxy(
    given: World, other: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token for a local server does not pass through a proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, other.mcp.url.removesuffix("/mcp"))
    await given.let_in(oauth())
    assert other.log == []


async def test_auth_with_other_credentials_in_url_or_headers_is_refused() -> None:
    for url, headers in (("https://u:p@a.example/mcp", {}), ("https://a.example/mcp", {"Authorization": "x"})):
        with pytest.raises(ValueError, match="not in both places"):
            async with http(url, headers=headers, auth=Bearer("token")):
                pass


async def test_a_refused_bearer_token_is_requested_again_once(given: World) -> None:
    given.families.add(1)
    given.tokens["second"] = {"scope": "", "family": 1, "jkt": None}
    tokens = iter(["first", "second", "third"])
    assert await call(given.url, Bearer(lambda: next(tokens))) == ["second"]
    (error,) = await call(given.url, Bearer("wrong"))
    assert isinstance(error, Refused)
    assert "wrong" not in str(error)
    await given.denied(Bearer("two\r\nlines"), "cannot stand in a header")


# --- clients without a user -----------------------------------------------------------------------------------


async def test_client_credentials_send_the_secret_and_renew_the_token_in_time(given: World, passes: Passes) -> None:
    auth = ClientCredentials(ClientSecret("program", given.issuer, secret=SECRET), scopes=["read"])
    assert auth.authorizer(given.url).extensions == {"io.modelcontextprotocol/oauth-client-credentials": {}}
    (first,) = await call(given.url, auth)
    (form,) = given.forms
    assert (form["client_secret"], form["resource"], form["scope"]) == (SECRET, given.url, "read")
    passes(3600)
    refused = given.counts("POST /mcp")
    (second,) = await call(given.url, auth)
    assert first != second
    assert given.counts("POST /mcp") == refused + 1


async def test_a_client_assertion_has_the_issuer_as_audience(given: World) -> None:
    key = ECKey.generate_key("P-256")
    program = PrivateKeyJwt("program", given.issuer, key=key.as_pem(private=True))
    await call(given.url, ClientCredentials(program))
    claims = jwt.decode(given.forms[0]["client_assertion"], key, algorithms=["ES256"]).claims
    assert (claims["aud"], claims["iss"], claims["sub"]) == (given.issuer, "program", "program")
    assert 0 < claims["exp"] - time.time() <= 300
    assert "PRIVATE" not in repr(program)


async def test_private_key_jwt_can_be_used_directly_as_auth(given: World) -> None:
    """It gets one token for all connections, like `ClientCredentials`, and is still usable as a client identity."""
    key = ECKey.generate_key("P-256")
    auth = PrivateKeyJwt("program", given.issuer, key=dict(key.as_dict(private=True)), key_id="one")
    assert await call(given.url, auth) == await call(given.url, auth)
    (form,) = given.forms
    assert form["grant_type"] == "client_credentials"
    assert jwt.decode(form["client_assertion"], key, algorithms=["ES256"]).header["kid"] == "one"
    assert "io.modelcontextprotocol/oauth-client-credentials" in auth.authorizer(given.url).extensions
    assert await call(given.url, ClientCredentials(auth)) != await call(given.url, auth)
    assert auth == PrivateKeyJwt("program", given.issuer, key=dict(key.as_dict(private=True)), key_id="one")


async def test_a_secret_with_a_configured_issuer_is_sent_to_no_other_issuer(given: World, other: World) -> None:
    given.edit_resource = lambda document: document | {"authorization_servers": [other.issuer]}
    await given.denied(ClientCredentials(ClientSecret("id", given.issuer, secret=SECRET)), "is known to")
    assert other.log == []


async def test_a_secret_is_not_sent_if_the_issuer_metadata_is_invalid(given: World, passes: Passes) -> None:
    """The default endpoints of MCP 2025-03-26 without metadata are only for servers that issue tokens."""
    store, client = MemoryStore(), ClientSecret("program", given.issuer, secret=SECRET)
    await call(given.url, ClientCredentials(client, store=store))
    passes(3600)
    given.edit_server = lambda document: document | {"issuer": "https://example.org"}
    await given.denied(ClientCredentials(client, store=store))
    assert given.counts("POST /token") == 1


@pytest.mark.parametrize("auth", [ClientCredentials(ClientSecret("id", secret=SECRET)), WorkloadIdentity("platform")])
async def test_a_secret_without_a_configured_issuer_is_bound_to_the_first_issuer(
    auth: ClientCredentials | WorkloadIdentity, given: World, other: World
) -> None:
    await given.let_in(auth)
    given.tokens.clear()
    given.edit_resource = lambda document: document | {"authorization_servers": [other.issuer]}
    for one in (given, other):  # a server that changes its issuer, and another server
        await one.denied(auth, "name the issuer")
    assert not other.forms


async def test_a_configured_identity_provider_may_be_inside_of_a_network(given: World) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.9"]

    clients = KnownClient("there"), KnownClient("here", given.issuer)
    auth = EnterpriseManaged("token", "https://idp.corp:1", *clients, fetcher=Fetcher(resolve=resolve))
    await given.denied(auth, "no answer from https://idp.corp:1")  # a connection was attempted


async def test_logging_out_revokes_and_deletes_tokens(given: World) -> None:
    store = MemoryStore()
    auth = oauth(store)
    token = await given.let_in(auth)
    await auth.logout(given.url)
    revoked = [form["token"] for form in given.forms if "token_type_hint" in form]
    assert token in revoked
    assert len(revoked) == 2
    await given.denied(oauth(store, login=None), "no user may be asked")


async def test_logging_out_revokes_tokens_refreshed_by_another_process(given: World) -> None:
    store = MemoryStore()
    auth, other = oauth(store), oauth(store, login=None)
    await call(given.url, auth)
    await call(given.url, other)
    given.tokens.clear()
    given.edit_token = late
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, given.url, other)
        await eventually(lambda: given.counts("token refresh_token"))
        await auth.logout(given.url)
    assert not [key for key in await store.keys() if key.resource]
    assert not given.tokens
    assert all(one["used"] for one in given.refreshes.values())  # the newest refresh token is revoked


@pytest.mark.parametrize("revokes", [True, False])
async def test_a_running_client_does_not_undo_the_logout_of_another_process(
    given: World, passes: Passes, revokes: bool
) -> None:
    dropped = set() if revokes else {"revocation_endpoint"}
    given.edit_server = lambda document: {name: document[name] for name in document.keys() - dropped}
    store = MemoryStore()
    await call(given.url, oauth(store))
    running = oauth(store, login=None)
    await call(given.url, running)
    with nullcontext() if revokes else pytest.raises(AuthorizationError, match="cannot revoke tokens"):
        await oauth(store).logout(given.url)
    passes(3600)
    await call(given.url, running)
    assert not [key for key in await store.keys() if key.resource]
    assert given.counts("token refresh_token") == 0


async def test_concurrent_requests_share_one_login(given: World) -> None:
    auth = oauth()
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(call, given.url, auth)
    assert given.counts("GET /authorize") == given.counts("token authorization_code") == 1


async def test_an_http_client_of_the_caller_is_used(given: World) -> None:
    async with httpx2.AsyncClient(headers={"x-mine": "1"}) as client:
        await given.let_in(oauth(), client=client)
        assert given.mcp.heard[-1].headers["x-mine"] == "1"
