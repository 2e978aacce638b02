"""Using tokens: fresh, wide enough, bound to a key, sent to their server only; and no server has us go on forever."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from mcp_bindgen.auth import Bearer, ClientCredentials, ClientSecret, KnownClient, Manual, PrivateKeyJwt, ServerQuirks
from mcp_bindgen.auth.client import authorizer
from mcp_bindgen.auth.client.clients import load_client, read_registration
from mcp_bindgen.auth.client.login import device_code
from mcp_bindgen.auth.client.tokens import Endpoints, Grant, TokenRequest
from mcp_bindgen.auth.fetch import Fetched, Fetcher
from mcp_bindgen.auth.metadata import ServerMetadata
from mcp_bindgen.auth.store import FileStore, MemoryStore
from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, Refused
from tests.support.authorization_world import CALLBACK, SECRET, World, agree, call, oauth, world
from tests.support.scripted_http_server import Heard, ask, go, request, serving

ROOT = Path(__file__).parents[3]


# --- refreshing -----------------------------------------------------------------------------------------------


def test_a_token_is_refreshed_before_it_expires_once_for_all_requests() -> None:
    async def body() -> None:
        async with world() as given:
            given.lifetime = 0.5
            auth = oauth()
            await call(given.url, auth)
            await anyio.sleep(0.5)
            given.lifetime = 3600
            refused = given.counts("POST /mcp")
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call, given.url, auth)
            assert given.counts("token refresh_token") == 1
            assert given.counts("POST /mcp") - refused == 20  # none was sent with the token that had expired

    go(body)


def test_numbers_that_are_too_large_to_calculate_with_do_no_harm() -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_token = lambda answer: {**answer, "expires_in": 10**400}
            (token,) = await call(given.url, oauth())
            assert str(token).startswith("at-")

    go(body)
    server = ServerMetadata("https://example.org", "https://example.org/token")
    answer = {"client_id": "a", "client_secret": SECRET, "client_secret_expires_at": 10**400}
    record = read_registration(server, Fetched(201, {}, answer), None, "client_secret_post")
    assert record["until"] is not None
    client = load_client(server.issuer, json.loads(json.dumps(record)))
    assert client == ClientSecret("a", server.issuer, secret=SECRET, method="client_secret_post")
    told = {"verification_uri": "https://example.org/device", "user_code": "AB", "device_code": "secret"}
    code, _, pause = device_code({**told, "interval": 10**400, "expires_in": 10**400})
    assert (code.seconds, pause) == (3600, 60)


@pytest.mark.parametrize(
    ("told", "lives"),
    [
        *((None, None), (True, None), ([], None), ({"a": 1}, None)),
        *((told, None) for told in (0, -1, 10**400, float("nan"), "nan", "soon", "")),
        *((told, 3650 * 86400) for told in (1e308, float("inf"), "1e999")),
        *((told, 3600) for told in (3600, 3600.0, "3600")),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_a_lifetime_that_cannot_be_meant_is_not_believed(told: Any, lives: float | None) -> None:
    server = ServerMetadata("https://example.org", "https://example.org/token")
    answer = {"access_token": "at", "token_type": "bearer", "expires_in": told}
    wanted = TokenRequest(server, "r", (), None, False, ServerQuirks(), Endpoints(Fetcher()))
    grant = wanted.grant(answer, KnownClient("c"))
    assert not grant.is_expired
    assert grant.is_fresh
    assert (None if grant.expires_at is None else round(grant.expires_at - grant.issued_at)) == lives
    assert Grant.load(json.loads(json.dumps(grant.dump()))) == grant


@pytest.mark.parametrize(
    "damage",
    [
        {"expires_at": "soon"},
        {"expires_at": float("nan")},
        {"expires_at": 1e300},
        {"issued_at": None},
        {"issued_at": -1},
        {"scopes": [1]},
        {"scopes": None},
        {"access_token": None},
        {"refresh_token": 1},
        {"key": {}},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_kept_and_was_damaged_is_not_used(damage: dict[str, Any]) -> None:
    grant = Grant("https://issuer", "https://resource", "client", "token", issued_at=1.0)
    assert Grant.load(grant.dump()) == grant
    assert Grant.load({**grant.dump(), **damage}) is None


@pytest.mark.parametrize("is_refreshable", [False, True])
def test_a_token_that_has_expired_leads_to_another_login(is_refreshable: bool) -> None:
    """Try a login without a refresh token, and one whose refresh token is no longer good."""

    async def body() -> None:
        async with world() as given:
            given.lifetime = 0.3
            given.edit_token = lambda answer: {
                name: value for name, value in answer.items() if is_refreshable or name != "refresh_token"
            }
            store = MemoryStore()
            auth = oauth(store)
            await call(given.url, auth)
            for again in (auth, oauth(store)):  # the same process, and one that was started again
                await anyio.sleep(0.4)
                given.refreshes.clear()
                logins = given.counts("GET /authorize")
                (token,) = await call(given.url, again)
                assert str(token).startswith("at-")
                assert given.counts("GET /authorize") == logins + 1

    go(body)


def test_requests_go_on_while_a_token_is_got() -> None:
    """The lock is around the refresh only: a request that is under way holds nobody up."""

    async def body() -> None:
        async with world() as given:
            held = anyio.Event()
            auth = oauth()
            await call(given.url, auth)

            async def slowly(heard: Heard) -> None:
                if b"slow" in heard.body:
                    await held.wait()
                await given.serve(heard)

            given.answer_mcp = slowly
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, given.url, auth, "slow")
                await anyio.sleep(0.05)
                given.tokens.clear()
                with anyio.fail_after(5):
                    (token,) = await call(given.url, auth, "quick")
                assert str(token).startswith("at-")
                assert given.counts("token refresh_token") == 1
                held.set()

    go(body)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_fails_takes_no_tokens_away(status: int) -> None:
    async def body() -> None:
        store = MemoryStore()
        async with world() as given:
            await call(given.url, oauth(store))
            given.tokens.clear()
            kept = [await store.load(key) for key in await store.keys()]
            given.answer_token = lambda form, heard: (status, {"error": "server_error"})
            (error,) = await call(given.url, oauth(store))
            assert isinstance(error, AuthorizationError)
            assert error.is_temporary
            assert [await store.load(key) for key in await store.keys()] == kept
            given.answer_token = lambda form, heard: None
            (token,) = await call(given.url, oauth(store, login=None))
            assert str(token).startswith("at-")

    go(body)


def test_a_server_that_fails_while_a_token_still_holds_is_asked_later() -> None:
    async def body() -> None:
        async with world() as given:
            given.lifetime = 2.0
            auth = oauth()
            first = await call(given.url, auth)
            given.answer_token = lambda form, heard: (503, {})
            await anyio.sleep(1.85)  # within the last tenth of its life
            assert await call(given.url, auth) == first
            assert given.counts("token refresh_token") == 1

    go(body)


def test_who_leaves_during_a_refresh_does_not_burn_the_token() -> None:
    async def body() -> None:
        async with world() as given:
            store = MemoryStore()
            await call(given.url, oauth(store))
            given.tokens.clear()
            auth = oauth(store, login=None)
            issue = given._issue

            async def leave() -> None:
                with anyio.move_on_after(0.15):
                    await call(given.url, auth)

            def slow(*arguments: Any) -> Any:
                time.sleep(0.3)  # the answer is on its way when the caller leaves
                return issue(*arguments)

            vars(given)["_issue"] = slow
            await leave()
            del vars(given)["_issue"]
            (token,) = await call(given.url, oauth(store, login=None))
            assert str(token).startswith("at-")
            assert given.families

    go(body)


REFRESHING = """\
import json, sys
import anyio
from mcp_bindgen.auth.store import FileStore
from tests.support.authorization_world import call, oauth

async def main(url, folder):
    auth = oauth(FileStore(folder), login=None)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([str(one) for one in await call(url, auth)]), flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.full
def test_processes_that_refresh_at_once_use_a_rotating_token_once(tmp_path: Path) -> None:
    async def body() -> None:
        folder = tmp_path / "kept"
        async with world() as given:
            await call(given.url, oauth(FileStore(folder)))
            given.tokens.clear()
            command = [sys.executable, "-c", REFRESHING, given.url, str(folder)]
            children = [
                await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(3)
            ]
            for child in children:
                assert child.stdout is not None
                assert await child.stdout.readline() == b"ready\n"
            for child in children:
                assert child.stdin is not None
                child.stdin.write(b"go\n")
            outputs = [json.loads((await child.communicate())[0]) for child in children]
            assert {str(one[0])[:3] for one in outputs} == {"at-"}, outputs
            assert given.counts("token refresh_token") == 1
            assert given.families  # the server saw no token twice

    go(body)


LOGGING_IN = """\
import json, sys
import anyio
from mcp_bindgen.auth import Manual
from mcp_bindgen.auth.store import FileStore
from tests.support.authorization_world import CALLBACK, agree, call, oauth

async def visit(url):
    print("visits", flush=True)
    await anyio.sleep(0.5)
    return await agree(url)

async def main(url, folder):
    auth = oauth(FileStore(folder), login=Manual(visit, CALLBACK))
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([str(one) for one in await call(url, auth)]), flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.full
def test_processes_that_need_a_login_at_once_ask_the_user_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with world() as given:
            command = [sys.executable, "-c", LOGGING_IN, given.url, str(tmp_path / "kept")]
            children = [
                await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(2)
            ]
            for child in children:
                assert child.stdout is not None
                assert await child.stdout.readline() == b"ready\n"
            for child in children:
                assert child.stdin is not None
                child.stdin.write(b"go\n")
            printed = [(await child.communicate())[0].decode().split() for child in children]
            assert sorted(len(lines) for lines in printed) == [1, 2], printed
            assert len({lines[-1] for lines in printed}) == 1
            assert given.counts("GET /authorize") == given.counts("POST /register") == 1

    go(body)


@pytest.mark.parametrize("ending", ["fails", "stays"])
def test_another_process_that_asks_in_vain_is_not_waited_for_for_long(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Have the user of the other process say no, or leave it alone with the question."""
    monkeypatch.setattr(authorizer, "_LOGIN_NOTICE_SECONDS", 0.1)
    monkeypatch.setattr(authorizer, "_LOGIN_WAIT_SECONDS", 60.0 if ending == "fails" else 0.3)
    store = FileStore(tmp_path / "kept")
    leaves = anyio.Event()

    async def refuse(url: str) -> str:
        await leaves.wait()
        raise AuthorizationError("no")

    async def first(url: str, store: FileStore) -> None:
        (error,) = await call(url, oauth(store, login=Manual(refuse, CALLBACK)))
        assert str(error) == "no"

    async def body() -> None:
        async with world() as given, anyio.create_task_group() as tasks:
            tasks.start_soon(first, given.url, FileStore(store.folder))
            while not list(store.folder.glob("*.lock")) or not given.registered:
                await anyio.sleep(0.01)
            (error,) = await call(
                given.url, oauth(FileStore(store.folder), login=None)
            )  # who may not ask does not wait
            assert "no user may be asked" in str(error)
            if ending == "fails":
                asyncio.get_running_loop().call_later(0.3, leaves.set)
            (token,) = await call(given.url, oauth(store))
            assert str(token).startswith("at-")
            leaves.set()
        assert [one for one in caplog.messages if "another program has the user log in" in one]

    go(body)


# --- widening -------------------------------------------------------------------------------------------------


def test_a_step_up_asks_for_the_union_and_keeps_what_was_granted() -> None:
    async def body() -> None:
        async with world() as given:
            given.challenge = {"scope": "read"}
            given.scopes_of = {"write": {"write"}, "both": {"read", "write"}}
            auth = oauth()
            tokens = await call(given.url, auth, "list", "write", "both", "list")
            assert [query["scope"] for query in given.queries] == ["read", "read write"]
            assert tokens[1] == tokens[2] == tokens[3] != tokens[0]

    go(body)


def test_a_server_that_always_wants_more_is_given_up() -> None:
    """Endless 403, with the same scope or a new one each time."""

    async def body() -> None:
        for wanted in ("admin", None):
            async with world() as given:
                count = 0

                async def never(heard: Heard, given: World = given, wanted: str | None = wanted) -> None:
                    nonlocal count
                    count += 1
                    if "authorization" not in heard.headers:
                        await given.refuse(heard, 401)
                    else:
                        scope = wanted or f"scope-{count}"
                        await given.refuse(heard, 403, error="insufficient_scope", scope=scope)

                given.answer_mcp = never
                (error,) = await call(given.url, oauth())
                assert isinstance(error, Refused)
                assert error.status == 403
                assert given.counts("GET /authorize") <= 3

    go(body)


def test_scopes_beyond_a_limit_are_not_asked_for() -> None:
    async def body() -> None:
        async with world() as given:
            given.challenge = {"scope": "read"}
            given.scopes_of = {"write": {"write"}}
            found = await call(given.url, oauth(limit=["read"]), "list", "write")
            assert str(found[0]).startswith("at-")
            assert "beyond the limit: write" in str(found[1])
            assert given.counts("GET /authorize") == 1

    go(body)


def test_a_flood_of_scopes_is_refused() -> None:
    async def body() -> None:
        async with world() as given:
            given.challenge = {"scope": " ".join(f"s{number}" for number in range(500))}
            (error,) = await call(given.url, oauth())
            assert "more than 100 scopes" in str(error)

    go(body)


# --- no end ---------------------------------------------------------------------------------------------------


def test_a_server_that_refuses_every_token_is_given_up_and_the_user_is_asked_once() -> None:
    async def body() -> None:
        async with world() as given:

            async def never(heard: Heard) -> None:
                await given.refuse(heard, 401, error="invalid_token")

            given.answer_mcp = never
            auth = oauth()
            errors = await call(given.url, auth, "a", "b", "c")
            assert all(isinstance(error, AuthorizationError) for error in errors)
            assert given.counts("GET /authorize") == 1
            assert given.counts("POST /mcp") < 10

    go(body)


def test_a_nonce_that_is_never_right_is_given_up() -> None:
    async def body() -> None:
        async with world() as given:
            count = 0

            async def never(heard: Heard) -> None:
                nonlocal count
                count += 1
                if "authorization" not in heard.headers:
                    await given.refuse(heard, 401)
                else:
                    shown = 'DPoP error="use_dpop_nonce"'
                    await heard.end(401, www_authenticate=shown, dpop_nonce=f"nonce-{count}")

            given.answer_mcp = never
            (error,) = await call(given.url, oauth(dpop=True))
            assert isinstance(error, Refused)
            assert count < 6
            asked = 0

            def another(form: dict[str, str], heard: Heard) -> tuple[int, dict[str, Any]]:
                nonlocal asked
                asked += 1
                given.nonce = f"n-{asked}"
                return 400, {"error": "use_dpop_nonce"}

            given.answer_mcp, given.answer_token = None, another
            (error,) = await call(given.url, oauth(dpop=True))
            assert isinstance(error, AuthorizationError)
            assert asked < 5

    go(body)


# --- bound to a key -------------------------------------------------------------------------------------------


def test_bound_tokens_are_proven_with_nonces_of_both_servers_and_survive_a_restart() -> None:
    async def body() -> None:
        async with world() as given:
            given.nonce = "nonce-1"
            store = MemoryStore()
            auth = oauth(store, dpop=True)
            assert auth.authorizer(given.url).extensions == {"io.modelcontextprotocol/auth/dpop": {}}
            found = await call(given.url, auth, "a", "b")
            assert found[0] == found[1]
            given.nonce = "nonce-2"
            assert await call(given.url, auth) == found[:1]
            given.tokens.clear()
            (renewed,) = await call(given.url, oauth(store, dpop=True, login=None))
            assert given.tokens[renewed]["jkt"] is not None
            assert given.queries[0]["dpop_jkt"] == given.tokens[renewed]["jkt"]

    go(body)


def test_a_server_cannot_talk_us_out_of_bound_tokens() -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_token = lambda answer: answer | {"token_type": "Bearer"}
            (error,) = await call(given.url, oauth(dpop=True))
            assert "not bound to our key" in str(error)

    go(body)


def test_tokens_are_bound_by_themselves_where_both_servers_can() -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_resource = lambda document: document | {"dpop_signing_alg_values_supported": ["ES256"]}
            (token,) = await call(given.url, oauth())
            assert given.tokens[token]["jkt"] is not None

    go(body)


# --- where tokens go ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_token_does_not_follow_a_redirect_to_another_server(status: int) -> None:
    async def body() -> None:
        seen: list[Heard] = []

        async def elsewhere(heard: Heard) -> None:
            seen.append(heard)
            await heard.end(200)

        async with serving(elsewhere) as other, world() as given:

            async def redirect(heard: Heard) -> None:
                await heard.end(status, location=other.url)

            auth = oauth()
            await call(given.url, auth)
            given.answer_mcp = redirect
            (error,) = await call(given.url, auth)
            assert isinstance(error, Refused)
            assert seen == []

    go(body)


def test_the_older_transport_authorizes_stream_and_messages_and_one_refusal_ends_one_request() -> None:
    """Over HTTP+SSE, too, every request shows the token, a person has time, and steps up."""

    async def body() -> None:
        shown: list[str] = []
        streams: list[Heard] = []

        async with world() as given:

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

            async def slowly(url: str) -> str:
                await anyio.sleep(0.5)
                return await agree(url)

            given.answer_mcp = old
            auth = oauth(limit=["write"], login=Manual(slowly, CALLBACK))
            assert await call(given.url, auth, "list", "write", opened=sse, timeout=0.4) == ["", "write"]
            found = await call(given.url, auth, "admin", "list", opened=sse, timeout=0.4)
            assert isinstance(found[0], AuthorizationError)
            assert found[1] == "write"
            assert [line.partition(" ")[0] for line in shown if line.endswith(" ")] == ["GET"]

    go(body)


def test_tokens_are_sent_over_https_or_to_this_machine() -> None:
    for auth in (oauth(), Bearer("token"), ClientCredentials(ClientSecret("id", secret=SECRET))):
        with pytest.raises(AuthorizationError, match="only sent over https"):
            auth.authorizer("http://a.example/mcp")


def test_a_token_for_this_machine_does_not_pass_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with world() as given, world() as proxy:
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            for name in ("http_proxy", "all_proxy"):
                monkeypatch.setenv(name, proxy.mcp.url.removesuffix("/mcp"))
            (token,) = await call(given.url, oauth())
            assert str(token).startswith("at-")
            assert proxy.log == []

    go(body)


def test_credentials_come_from_one_place() -> None:
    async def body() -> None:
        for url, headers in (("https://u:p@a.example/mcp", {}), ("https://a.example/mcp", {"Authorization": "x"})):
            with pytest.raises(ValueError, match="not in both places"):
                async with http(url, headers=headers, auth=Bearer("token")):
                    pass

    go(body)


def test_a_bearer_token_is_got_again_once_when_it_is_refused() -> None:
    async def body() -> None:
        async with world() as given:
            given.families.add(1)
            given.tokens["second"] = {"scope": "", "family": 1, "jkt": None}
            tokens = iter(["first", "second", "third"])
            assert await call(given.url, Bearer(lambda: next(tokens))) == ["second"]
            (error,) = await call(given.url, Bearer("wrong"))
            assert isinstance(error, Refused)
            assert "wrong" not in str(error)
            (error,) = await call(given.url, Bearer("two\r\nlines"))
            assert "cannot stand in a header" in str(error)

    go(body)


# --- programs -------------------------------------------------------------------------------------------------


def test_a_program_authenticates_with_a_secret_and_gets_another_token_in_time() -> None:
    async def body() -> None:
        async with world() as given:
            given.lifetime = 0.3
            auth = ClientCredentials(ClientSecret("program", given.issuer, secret=SECRET), scopes=["read"])
            assert auth.authorizer(given.url).extensions == {"io.modelcontextprotocol/oauth-client-credentials": {}}
            (first,) = await call(given.url, auth)
            (form,) = given.forms
            assert (form["client_secret"], form["resource"], form["scope"]) == (SECRET, given.url, "read")
            await anyio.sleep(0.3)
            refused = given.counts("POST /mcp")
            (second,) = await call(given.url, auth)
            assert first != second
            assert given.counts("POST /mcp") == refused + 1

    go(body)


def test_a_program_signs_for_the_issuer_and_not_for_the_endpoint() -> None:
    async def body() -> None:
        key = ECKey.generate_key("P-256")
        async with world() as given:
            auth = ClientCredentials(PrivateKeyJwt("program", given.issuer, key=key.as_pem(private=True)))
            await call(given.url, auth)
            claims = jwt.decode(given.forms[0]["client_assertion"], key, algorithms=["ES256"]).claims
            assert (claims["aud"], claims["iss"], claims["sub"]) == (given.issuer, "program", "program")
            assert 0 < claims["exp"] - time.time() <= 300
            assert "PRIVATE" not in repr(auth._client)

    go(body)


def test_a_client_that_signs_is_a_way_to_be_authorized_by_itself() -> None:
    """It gets one token for all connections, as the same client's `ClientCredentials` do, and stays an identity."""

    async def body() -> None:
        key = ECKey.generate_key("P-256")
        async with world() as given:
            auth = PrivateKeyJwt("program", given.issuer, key=dict(key.as_dict(private=True)), key_id="one")
            assert await call(given.url, auth) == await call(given.url, auth)
            (form,) = given.forms
            assert form["grant_type"] == "client_credentials"
            assert jwt.decode(form["client_assertion"], key, algorithms=["ES256"]).header["kid"] == "one"
            assert "io.modelcontextprotocol/oauth-client-credentials" in auth.authorizer(given.url).extensions
            assert await call(given.url, ClientCredentials(auth)) != await call(given.url, auth)
            assert auth == PrivateKeyJwt("program", given.issuer, key=dict(key.as_dict(private=True)), key_id="one")

    go(body)


def test_a_program_whose_issuer_is_named_sends_its_secret_nowhere_else() -> None:
    async def body() -> None:
        async with world() as given, world() as hostile:
            given.edit_resource = lambda document: document | {"authorization_servers": [hostile.issuer]}
            (error,) = await call(given.url, ClientCredentials(ClientSecret("id", given.issuer, secret=SECRET)))
            assert "is known to" in str(error)
            assert hostile.log == []

    go(body)


def test_a_program_sends_its_secret_to_no_mcp_server_when_its_issuer_says_nothing_valid() -> None:
    """The endpoints that MCP servers of 2025-03-26 have without metadata are for servers that issue tokens."""

    async def body() -> None:
        async with world() as given:
            given.lifetime = 0.5
            store, client = MemoryStore(), ClientSecret("program", given.issuer, secret=SECRET)
            await call(given.url, ClientCredentials(client, store=store))
            await anyio.sleep(0.5)
            given.edit_server = lambda document: document | {"issuer": "https://example.org"}
            (error,) = await call(given.url, ClientCredentials(client, store=store))
            assert isinstance(error, AuthorizationError)
            assert given.counts("POST /token") == 1

    go(body)


def test_a_program_whose_issuer_is_not_named_stays_with_the_first_one() -> None:
    async def body() -> None:
        async with world() as given, world() as hostile:
            auth = ClientCredentials(ClientSecret("id", secret=SECRET))
            (token,) = await call(given.url, auth)
            assert str(token).startswith("at-")
            given.tokens.clear()
            given.edit_resource = lambda document: document | {"authorization_servers": [hostile.issuer]}
            for url in (given.url, hostile.url):  # a server that changes its mind, and another one
                (error,) = await call(url, auth)
                assert isinstance(error, AuthorizationError)
                assert "name the issuer" in str(error)
            assert not hostile.forms

    go(body)


def test_logging_out_revokes_and_forgets() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with world() as given:
            auth = oauth(store)
            (token,) = await call(given.url, auth)
            await auth.logout(given.url)
            revoked = [form["token"] for form in given.forms if "token_type_hint" in form]
            assert token in revoked
            assert len(revoked) == 2
            (error,) = await call(given.url, oauth(store, login=None))
            assert "no user may be asked" in str(error)

    go(body)


def test_logging_out_ends_what_another_process_has_just_refreshed() -> None:
    async def body() -> None:
        async with world() as given:
            store = MemoryStore()
            auth, other = oauth(store), oauth(store, login=None)
            await call(given.url, auth)
            await call(given.url, other)
            given.tokens.clear()
            issue = given._issue

            def slow(*arguments: Any) -> Any:
                time.sleep(0.3)
                return issue(*arguments)

            vars(given)["_issue"] = slow
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, given.url, other)
                while not given.counts("token refresh_token"):
                    await anyio.sleep(0.01)
                await auth.logout(given.url)
            assert await store.load(auth.authorizer(given.url)._key_of(given.issuer)) is None
            assert not given.tokens
            assert all(one["used"] for one in given.refreshes.values())  # the newest one is revoked

    go(body)


def test_a_login_is_shared_by_all_who_wait_for_it() -> None:
    async def body() -> None:
        async with world() as given:
            auth = oauth()
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(call, given.url, auth)
            assert given.counts("GET /authorize") == given.counts("token authorization_code") == 1

    go(body)


def test_a_client_of_the_caller_is_used() -> None:
    async def body() -> None:
        async with world() as given, httpx2.AsyncClient(headers={"x-mine": "1"}) as client:
            async with http(given.url, auth=oauth(), client=client) as transport:
                await ask(transport, request(1))
            assert given.mcp.heard[-1].headers["x-mine"] == "1"

    go(body)
