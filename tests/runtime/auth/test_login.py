"""Logging in: what an honest server sees, and that a hostile one gets nowhere."""

from __future__ import annotations

import base64
import logging
from typing import Any
from urllib.parse import quote_plus

import anyio
import pytest

from mcp_bindgen.auth import ClientCredentials, ClientSecret, KnownClient, Manual, ServerQuirks
from mcp_bindgen.auth.store import Key, MemoryStore, Record
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from tests.support.authorization_world import CALLBACK, SECRET, agree, call, oauth, world
from tests.support.scripted_http_server import Heard, ask, go, request


def test_a_login_asks_for_just_this_server_with_pkce_and_is_used_for_every_request() -> None:
    async def body() -> None:
        async with world() as given:
            given.challenge = {"scope": "files:read"}
            auth = oauth()
            tokens = await call(given.url, auth, "a", "b")
            assert tokens[0] == tokens[1]
            assert str(tokens[0]).startswith("at-")
            (query,) = given.queries
            (form,) = given.forms
            assert query["resource"] == form["resource"] == given.url
            assert (query["scope"], query["code_challenge_method"]) == ("files:read", "S256")
            assert (query["redirect_uri"], query["response_type"]) == (CALLBACK, "code")
            (registered,) = given.registered
            assert registered["application_type"] == "native"
            assert registered["grant_types"] == ["authorization_code", "refresh_token"]
            assert [one.query for one in given.mcp.heard if one.path == "/mcp"] == ["", "", ""]
            assert await call(given.url, auth) == tokens[:1]
            assert given.counts("GET /authorize") == 1

    go(body)


def test_what_was_granted_survives_a_restart_and_is_refreshed_where_it_was_issued() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with world() as given:
            await call(given.url, oauth(store))
            given.tokens.clear()  # the server has forgotten the access token
            (token,) = await call(given.url, oauth(store, login=None))
            assert str(token).startswith("at-")
            assert given.counts("GET /authorize") == given.counts("token refresh_token") == 1
            assert len(given.registered) == 1

    go(body)


# --- what comes back from the browser -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda back: back | {"iss": "https://evil.example"}, "does not come from"),
        (lambda back: back | {"iss": back["iss"] + "/"}, "does not come from"),
        (lambda back: back | {"iss": back["iss"].upper()}, "does not come from"),
        (lambda back: back | {"iss": back["iss"].replace("127", "%31%32%37")}, "does not come from"),
        (lambda back: {name: back[name] for name in ("code", "state")}, "does not come from"),
        (lambda back: f"{CALLBACK}?code=c&state={back['state']}&iss={back['iss']}&iss=https://evil.example", "twice"),
        (lambda back: f"{CALLBACK}?code=c&state={back['state']}&code=d&iss={back['iss']}", "twice"),
        (lambda back: back | {"state": "another"}, "did not return"),
        (lambda back: {"code": back["code"], "iss": back["iss"]}, "did not return"),
        (lambda back: f"{CALLBACK}?code=c&state={back['state']}&state=other&iss={back['iss']}", "did not return"),
        (
            lambda back: f"https://evil.example/callback?code=c&state={back['state']}&iss={back['iss']}",
            "did not return",
        ),
        (lambda back: {"state": back["state"], "iss": back["iss"]}, "without a code"),
        (lambda back: {"error": "access_denied", "state": back["state"], "iss": back["iss"]}, "access_denied"),
    ],
)
def test_an_answer_that_is_not_exactly_ours_is_refused_before_anything_is_sent(edit: Any, why: str) -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_response = edit
            (error,) = await call(given.url, oauth())
            assert isinstance(error, AuthorizationError)
            assert why in str(error)
            assert given.counts("POST /token") == 0

    go(body)


def test_nothing_of_an_answer_that_is_not_of_the_server_is_shown() -> None:
    async def body() -> None:
        async with world() as given:
            said = {"error": "VISIT evil.example", "error_description": "VISIT", "iss": "https://evil"}
            given.edit_response = lambda back: {**said, "state": back["state"]}
            (error,) = await call(given.url, oauth())
            assert "VISIT" not in str(error)
            assert "https://evil" not in str(error)

    go(body)


def test_an_error_is_shown_in_one_harmless_line() -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_response = lambda back: (
                back | {"error": "no\x1b[31m", "error_description": "a\r\nb" + "x" * 5000}
            )
            (error,) = await call(given.url, oauth())
            assert str(error).isprintable()
            assert len(str(error)) < 500

    go(body)


def test_a_state_is_not_used_again() -> None:
    """An address that was pasted before is not taken a second time."""

    async def body() -> None:
        seen: list[str] = []

        async def visit(url: str) -> str:
            seen.append(await agree(url))
            return seen[0]

        async with world() as given:
            first = await call(given.url, oauth(login=Manual(visit, CALLBACK)))
            assert str(first[0]).startswith("at-")
            (error,) = await call(given.url, oauth(login=Manual(visit, CALLBACK)))
            assert "did not return the response" in str(error)
            assert given.counts("POST /token") == 1

    go(body)


def test_a_mix_up_of_two_servers_gets_no_code() -> None:
    """A hostile authorization server sends the user on to an honest one and waits for the code (RFC 9207)."""

    async def body() -> None:
        async with world() as honest, world() as hostile:

            async def visit(url: str) -> str:
                await agree(url)
                query = hostile.queries[-1]
                return f"{CALLBACK}?code=code-of-the-honest-one&state={query['state']}&iss={honest.issuer}"

            (error,) = await call(hostile.url, oauth(login=Manual(visit, CALLBACK)))
            assert "does not come from" in str(error)
            assert hostile.counts("POST /token") == honest.counts("POST /token") == 0

    go(body)


# --- metadata -------------------------------------------------------------------------------------------------


def without(*names: str) -> Any:
    return lambda document: {name: value for name, value in document.items() if name not in names}


SERVERS: list[tuple[Any, str]] = [
    (without("code_challenge_methods_supported"), "PKCE"),
    (lambda document: document | {"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    (lambda document: document | {"code_challenge_methods_supported": []}, "PKCE"),
    (lambda document: document | {"issuer": "https://honest.example"}, "another issuer"),
    (lambda document: document | {"issuer": document["issuer"] + "/"}, "another issuer"),
    (without("issuer"), "no usable issuer"),
    (without("token_endpoint"), "no usable token_endpoint"),
    (lambda document: document | {"authorization_endpoint": "javascript:alert(1)"}, "must be an https URL"),
    (lambda document: document | {"authorization_endpoint": "file:///etc/passwd"}, "must be an https URL"),
    (lambda document: document | {"authorization_endpoint": "http://evil.example/a"}, "must be an https URL"),
    (lambda document: document | {"authorization_endpoint": "--help"}, "must be an https URL"),
    (lambda document: document | {"authorization_endpoint": "https://u@evil.example/"}, "must be an https URL"),
    (lambda document: document | {"authorization_endpoint": "https://a.example/$(calc)"}, "a command"),
    (lambda document: document | {"authorization_endpoint": "https://a.example/`id`"}, "a command"),
    (lambda document: document | {"authorization_endpoint": "https://a.example/';id;'"}, "a command"),
    (lambda document: document | {"authorization_endpoint": "https://a.example/a b"}, "a command"),
    (lambda document: document | {"authorization_endpoint": 'https://a.example/"&calc&"'}, "a command"),
    (lambda document: document | {"authorization_endpoint": "https://a.example/?state=x"}, "parameters"),
    (lambda document: document | {"token_endpoint": "https://10.0.0.1/token"}, "inside of a network"),
    (lambda document: document | {"token_endpoint": "http://a.example/token"}, "is not https"),
    (lambda document: document | {"registration_endpoint": "https://169.254.169.254/"}, "inside of a network"),
    (lambda document: 500, "500"),
    (lambda document: [document], "without a JSON object"),
]
RESOURCES: list[tuple[Any, str]] = [
    (lambda document: document | {"resource": "https://other.example/mcp"}, "another resource"),
    (lambda document: document | {"resource": document["resource"] + "/deeper"}, "another resource"),
    (lambda document: document | {"resource": document["resource"] + "-2"}, "another resource"),
    (lambda document: document | {"resource": document["resource"].removesuffix("/mcp")}, "above the server"),
    (lambda document: document | {"resource": document["resource"] + "#x"}, "another resource"),
    (lambda document: document | {"resource": 7}, "no usable resource"),
    (without("resource"), "no usable resource"),
    (lambda document: document | {"authorization_servers": ["http://evil.example"]}, "https URL"),
    (lambda document: document | {"authorization_servers": ["https://10.0.0.1"]}, "inside of a network"),
    (lambda document: document | {"authorization_servers": ["https://[::ffff:169.254.169.254]"]}, "inside"),
    (lambda document: document | {"authorization_servers": ["https://2130706433"]}, "hides"),
    (lambda document: document | {"authorization_servers": "https://a.example"}, "no usable authorization_servers"),
    (lambda document: document | {"scopes_supported": [f"s{number}" for number in range(500)]}, "scopes"),
    (lambda document: 503, "503"),
]


@pytest.mark.parametrize(("edit", "why"), SERVERS)
def test_metadata_of_an_authorization_server_that_is_not_safe_ends_the_login(edit: Any, why: str) -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_server = edit
            (error,) = await call(given.url, oauth(login=Manual(_stays, CALLBACK)))
            assert isinstance(error, AuthorizationError)
            assert why in str(error)
            assert given.counts("POST /token") == given.counts("GET /authorize") == 0

    go(body)


async def _stays(url: str) -> str:
    raise AuthorizationError(f"the browser was opened, though it should not: {url}")


@pytest.mark.parametrize(("edit", "why"), RESOURCES)
def test_metadata_of_a_resource_that_is_not_about_it_ends_the_login(edit: Any, why: str) -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_resource = edit
            (error,) = await call(given.url, oauth())
            assert isinstance(error, AuthorizationError)
            assert why in str(error)
            assert given.counts("GET /authorize") == 0

    go(body)


def test_a_token_endpoint_inside_of_a_network_gets_no_code() -> None:
    """Metadata may say one thing now and another one later: each address is checked when it is used."""

    async def body() -> None:
        async with world() as given:
            changed: list[dict[str, Any]] = []

            def later(document: dict[str, Any]) -> dict[str, Any]:
                changed.append(document)
                return document if len(changed) == 1 else document | {"token_endpoint": "https://evil.example/token"}

            given.edit_server = later
            store = MemoryStore()
            await call(given.url, oauth(store))
            given.tokens.clear()
            given.edit_server = lambda document: document | {"issuer": "https://evil.example"}
            (error,) = await call(given.url, oauth(store, login=None))
            assert "another issuer" in str(error)
            assert given.counts("POST /token") == 1

    go(body)


def test_the_place_that_a_challenge_names_is_not_fetched_inside_of_a_network() -> None:
    async def body() -> None:
        async with world() as given:
            for place in ("https://169.254.169.254/latest", "http://10.0.0.1/", "file:///etc/passwd"):
                given.challenge = {"resource_metadata": place}
                (error,) = await call(given.url, oauth())
                assert isinstance(error, AuthorizationError)
            assert given.counts("GET /.well-known") == 0

    go(body)


def test_a_failing_server_is_not_taken_for_an_old_one() -> None:
    """Assume of a server without metadata what MCP 2025-03-26 says, and not of one that fails."""

    async def body() -> None:
        async with world() as given:
            given.edit_resource = lambda document: 502
            (error,) = await call(given.url, oauth())
            assert isinstance(error, AuthorizationError)
            assert error.is_temporary
            assert given.counts("GET /authorize") == given.counts("POST /register") == 0

    go(body)


# --- who the client is ----------------------------------------------------------------------------------------


def test_a_client_of_one_issuer_is_not_used_with_another() -> None:
    async def body() -> None:
        async with world() as given, world() as other:
            known = ClientSecret("known", other.issuer, secret="of-the-other")
            (error,) = await call(given.url, oauth(client=known))
            assert "is known to" in str(error)
            store = MemoryStore()
            loose = KnownClient("loose")
            assert str((await call(given.url, oauth(store, client=loose)))[0]).startswith("at-")
            given.edit_resource = lambda document: document | {"authorization_servers": [other.issuer]}
            given.tokens.clear()
            (error,) = await call(given.url, oauth(store, client=loose))
            assert "is known to" in str(error)
            assert other.counts("GET /authorize") == other.counts("POST /token") == 0

    go(body)


def test_another_authorization_server_means_another_registration_and_another_token() -> None:
    async def body() -> None:
        async with world() as given, world() as other:
            auth = oauth()
            await call(given.url, auth)
            tokens = dict(given.tokens)
            given.edit_resource = lambda document: document | {"authorization_servers": [other.issuer]}
            given.tokens, given.families = other.tokens, other.families
            (token,) = await call(given.url, auth)
            assert token in other.tokens
            assert len(given.registered) == len(other.registered) == 1
            assert [form["grant_type"] for form in other.forms] == ["authorization_code"]
            sent = " ".join(str(form) for form in other.forms)
            assert not any(one in sent for one in (*tokens, *given.refreshes))

    go(body)


@pytest.mark.parametrize("status", [400, 403, 500])
def test_a_registration_that_is_rejected_is_explained(status: int) -> None:
    async def body() -> None:
        async with world() as given:
            play = given.play_issuing

            async def rejecting(heard: Heard) -> None:
                if heard.path == "/register":
                    said = {"error": "invalid_redirect_uri", "error_description": "no\nloopback"}
                    await heard.json(said, status)
                else:
                    await play(heard)

            given.issuing.play = rejecting
            (error,) = await call(given.url, oauth())
            assert "does not register this client" in str(error)
            assert "invalid_redirect_uri: no\\nloopback" in str(error)
            assert error.is_temporary == (status == 500)

    go(body)


def test_a_registration_that_the_server_has_forgotten_is_made_again() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with world() as given:
            await call(given.url, oauth(store))
            given.tokens.clear()
            given.refreshes.clear()
            given.answer_token = lambda form, heard: (
                (401, {"error": "invalid_client"}) if form.get("client_id") == "client-1" else None
            )
            (token,) = await call(given.url, oauth(store))
            assert str(token).startswith("at-")
            assert len(given.registered) == 2

    go(body)


# --- departures -----------------------------------------------------------------------------------------------


def test_departures_are_for_the_issuer_that_is_named_and_for_no_other() -> None:
    async def body() -> None:
        async with world() as given:
            given.edit_server = without("code_challenge_methods_supported")
            known = {given.issuer: ServerQuirks(omit_resource=True, assume_pkce=True)}
            (token,) = await call(given.url, oauth(quirks=known))
            assert str(token).startswith("at-")
            assert "resource" not in {**given.queries[0], **given.forms[0]}
            assert given.queries[0]["code_challenge_method"] == "S256"
            others = {f"{given.issuer}/": ServerQuirks(assume_pkce=True)}
            (error,) = await call(given.url, oauth(quirks=others))
            assert "PKCE" in str(error)

    go(body)


# --- secrets --------------------------------------------------------------------------------------------------


def test_no_secret_is_in_logs_errors_or_representations(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        store = MemoryStore()
        async with world() as given:
            auth = oauth(store)
            await call(given.url, auth)
            secrets = [*given.tokens, *given.refreshes, SECRET, given.forms[0]["code_verifier"], "code-1"]
            given.tokens.clear()
            said = " and ".join(secrets)
            given.answer_token = lambda form, heard: (400, {"error": "invalid_grant", "error_description": said})
            given.edit_response = lambda back: back | {"iss": f"https://{secrets[0]}"}
            (error,) = await call(given.url, auth)
            shown = [str(error), repr(error), repr(auth), repr(vars(auth)), repr(store), *caplog.messages]
            shown += [repr(one) for one in vars(auth.authorizer(given.url)).values()]
            shown += [record.getMessage() for record in caplog.records]
            for secret in secrets:
                assert not any(secret in text for text in shown), secret

    caplog.set_level(logging.DEBUG)
    go(body)


def test_waiting_for_a_person_does_not_count_and_can_be_cancelled() -> None:
    async def body() -> None:
        async with world() as given:

            async def slowly(url: str) -> str:
                await anyio.sleep(0.6)
                return await agree(url)

            async with http(given.url, auth=oauth(login=Manual(slowly, CALLBACK)), timeout=0.3) as transport:
                assert str((await ask(transport, request(1)))["result"]).startswith("at-")

            async def never(url: str) -> str:
                await anyio.sleep_forever()
                raise AssertionError

            with anyio.move_on_after(0.5) as scope:
                await call(given.url, oauth(login=Manual(never, CALLBACK)))
            assert scope.cancelled_caught

    go(body)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_secret_that_is_sent_back_in_an_error_is_not_shown(method: str) -> None:
    secret = f"{SECRET}+more"
    pair = base64.b64encode(f"machine:{quote_plus(secret)}".encode()).decode()

    async def body() -> None:
        async with world() as given:
            for echoed in (secret, pair):
                said = {"error": "invalid_client", "error_description": f"I know no {echoed}"}
                given.answer_token = lambda form, heard, said=said: (401, said)  # type: ignore[misc]
                auth = ClientCredentials(ClientSecret("machine", given.issuer, secret=secret, method=method))
                (error,) = await call(given.url, auth)
                assert isinstance(error, AuthorizationError)
                assert (echoed in str(error)) == (echoed == pair and method == "client_secret_post")  # not sent then

    go(body)


def test_two_processes_hold_a_client_to_the_same_issuer() -> None:
    """The one that is second to keep the first issuer of a client finds out about the other."""

    class Raced(MemoryStore):
        async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
            if key == Key("", "", "desk") and old is None:
                await super().replace(key, None, {"issuer": "https://other.example"})
            return await super().replace(key, old, new)

    async def body() -> None:
        async with world() as given:
            (error,) = await call(given.url, oauth(Raced(), client=KnownClient("desk")))
            assert "is known to https://other.example" in str(error)
            assert given.counts("GET /authorize") == 0

    go(body)
