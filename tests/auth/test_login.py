"""Login: the requests that an honest server receives, and attacks of hostile servers."""

from __future__ import annotations

import base64
import logging
import re
from typing import Any
from urllib.parse import quote, quote_plus

import anyio
import pytest

from mcp_bindgen.auth import ClientCredentials, ClientSecret, KnownClient, Manual, ServerQuirks
from mcp_bindgen.auth.store import Key, MemoryStore, Record, put
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from tests.harness.authorization_world import CALLBACK, SECRET, World, agree, call, oauth, slowly
from tests.harness.effort import rows
from tests.harness.scripted_http_server import Heard


async def test_a_login_requests_a_token_for_this_server_with_pkce_and_reuses_it(given: World) -> None:
    given.challenge = {"scope": "files:read"}
    auth = oauth()
    tokens = await call(given.url, auth, "a", "b")
    assert tokens == [await given.let_in(auth)] * 2
    (query,), (form,) = given.queries, given.forms
    assert query["resource"] == form["resource"] == given.url
    assert (query["scope"], query["code_challenge_method"]) == ("files:read", "S256")
    assert (query["redirect_uri"], query["response_type"]) == (CALLBACK, "code")
    (registered,) = given.registered
    assert registered["application_type"] == "native"
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    assert [one.query for one in given.mcp.heard if one.path == "/mcp"] == ["", "", "", ""]
    assert given.counts("GET /authorize") == 1


async def test_a_stored_grant_survives_a_restart_and_is_refreshed_by_its_issuer(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()  # revokes the access token
    await given.let_in(oauth(store, login=None))
    assert given.counts("GET /authorize") == given.counts("token refresh_token") == 1
    assert len(given.registered) == 1


# --- authorization responses ----------------------------------------------------------------------------------


ANSWERS = {  # parameters of the response, or its whole address -> the error
    "does not come from": [
        "code=C&state=S&iss=https://evil.example",
        *("code=C&state=S&iss=ISSUER/", "code=C&state=S&iss=UPPER", "code=C&state=S&iss=QUOTED", "code=C&state=S"),
    ],
    "twice": ["code=C&state=S&iss=ISSUER&iss=https://evil.example", "code=C&state=S&code=d&iss=ISSUER"],
    "did not return": [
        *("code=C&state=another&iss=ISSUER", "code=C&iss=ISSUER", "code=C&state=S&state=other&iss=ISSUER"),
        "https://evil.example/callback?code=C&state=S&iss=ISSUER",
    ],
    "without a code": ["state=S&iss=ISSUER"],
    "access_denied": ["error=access_denied&state=S&iss=ISSUER"],
}


@pytest.mark.parametrize(("answer", "why"), rows(ANSWERS))
async def test_an_invalid_authorization_response_sends_no_code(given: World, answer: str, why: str) -> None:
    def edit(back: dict[str, str]) -> str:
        issuer = back["iss"]
        values = {"C": back["code"], "S": back["state"], "ISSUER": issuer, "UPPER": issuer.upper()}
        values["QUOTED"] = quote(issuer.replace("127", "%31%32%37"))
        shown = re.sub(r"=(C|S|ISSUER|UPPER|QUOTED)\b", lambda found: f"={values[found[1]]}", answer)
        return shown if "?" in shown else f"{CALLBACK}?{shown}"

    given.edit_response = edit
    await given.denied(oauth(), why)
    assert given.counts("POST /token") == 0


async def test_errors_show_no_text_of_a_response_from_another_issuer(given: World) -> None:
    said = {"error": "VISIT evil.example", "error_description": "VISIT", "iss": "https://evil"}
    given.edit_response = lambda back: {**said, "state": back["state"]}
    (error,) = await call(given.url, oauth())
    assert "VISIT" not in str(error)
    assert "https://evil" not in str(error)


async def test_an_authorization_error_is_shown_in_one_printable_line(given: World) -> None:
    given.edit_response = lambda back: back | {"error": "no\x1b[31m", "error_description": "a\r\nb" + "x" * 5000}
    (error,) = await call(given.url, oauth())
    assert str(error).isprintable()
    assert len(str(error)) < 500


async def test_an_authorization_response_is_not_accepted_twice(given: World) -> None:
    """An address that was pasted before is refused."""
    seen: list[str] = []

    async def visit(url: str) -> str:
        seen.append(await agree(url))
        return seen[0]

    await given.let_in(oauth(login=Manual(visit, CALLBACK)))
    await given.denied(oauth(login=Manual(visit, CALLBACK)), "did not return the response")
    assert given.counts("POST /token") == 1


async def test_a_mix_up_attack_gets_no_code(given: World, other: World) -> None:
    """A hostile authorization server redirects the user to an honest one and waits for the code (RFC 9207)."""

    async def visit(url: str) -> str:
        await agree(url)
        query = other.queries[-1]
        return f"{CALLBACK}?code=code-of-the-honest-one&state={query['state']}&iss={given.issuer}"

    await other.denied(oauth(login=Manual(visit, CALLBACK)), "does not come from")
    assert other.counts("POST /token") == given.counts("POST /token") == 0


# --- metadata -------------------------------------------------------------------------------------------------


def without(*names: str) -> Any:
    return lambda document: {name: value for name, value in document.items() if name not in names}


def adding(**members: Any) -> Any:
    return lambda document: document | members


ENDPOINTS = {
    "must be an https URL": "javascript:alert(1) file:///etc/passwd http://evil.example/a --help https://u@evil.example/",
    "a command": "https://a.example/$(calc) https://a.example/`id` https://a.example/';id;' https://a.example/\"&calc&\"",
    "parameters": "https://a.example/?state=x",
}
SERVERS: list[tuple[Any, str]] = [
    (without("code_challenge_methods_supported"), "PKCE"),
    *((adding(code_challenge_methods_supported=methods), "PKCE") for methods in (["plain"], [])),
    (adding(issuer="https://honest.example"), "another issuer"),
    (lambda document: document | {"issuer": document["issuer"] + "/"}, "another issuer"),
    (without("issuer"), "no usable issuer"),
    (without("token_endpoint"), "no usable token_endpoint"),
    *((adding(authorization_endpoint=url), why) for why, urls in ENDPOINTS.items() for url in urls.split()),
    (adding(authorization_endpoint="https://a.example/a b"), "a command"),
    (adding(token_endpoint="https://10.0.0.1/token"), "inside of a network"),
    (adding(token_endpoint="http://a.example/token"), "is not https"),
    (adding(registration_endpoint="https://169.254.169.254/"), "inside of a network"),
    (lambda document: 500, "500"),
    (lambda document: [document], "without a JSON object"),
]
RESOURCES: list[tuple[Any, str]] = [
    (adding(resource="https://other.example/mcp"), "another resource"),
    (lambda document: document | {"resource": document["resource"] + "/deeper"}, "another resource"),
    (lambda document: document | {"resource": document["resource"] + "-2"}, "another resource"),
    (lambda document: document | {"resource": document["resource"].removesuffix("/mcp")}, "above the server"),
    (lambda document: document | {"resource": document["resource"] + "#x"}, "another resource"),
    *((edit, "no usable resource") for edit in (adding(resource=7), without("resource"))),
    (adding(authorization_servers=["http://evil.example"]), "https URL"),
    (adding(authorization_servers=["https://10.0.0.1"]), "inside of a network; if you trust it, name it: --issuer"),
    (adding(authorization_servers=["https://[::ffff:169.254.169.254]"]), "inside"),
    (adding(authorization_servers=["https://2130706433"]), "hides"),
    (adding(authorization_servers="https://a.example"), "no usable authorization_servers"),
    (adding(scopes_supported=[f"s{number}" for number in range(500)]), "scopes"),
    (lambda document: 503, "503"),
]


@pytest.mark.parametrize(("edit", "why"), SERVERS)
async def test_unsafe_metadata_of_an_issuer_ends_the_login(given: World, edit: Any, why: str) -> None:
    async def stays(url: str) -> str:
        raise AuthorizationError(f"the browser was opened, though it should not: {url}")

    given.edit_server = edit
    await given.denied(oauth(login=Manual(stays, CALLBACK)), why)
    assert given.counts("POST /token") == given.counts("GET /authorize") == 0


@pytest.mark.parametrize(("edit", "why"), RESOURCES)
async def test_invalid_metadata_of_a_resource_ends_the_login(given: World, edit: Any, why: str) -> None:
    given.edit_resource = edit
    await given.denied(oauth(), why)
    assert given.counts("GET /authorize") == 0


async def test_metadata_that_changes_between_fetches_gets_no_credentials(given: World) -> None:
    """Metadata may change between two fetches: each address is checked when it is used."""
    changed: list[dict[str, Any]] = []

    def later(document: dict[str, Any]) -> dict[str, Any]:
        changed.append(document)
        return document if len(changed) == 1 else document | {"token_endpoint": "https://evil.example/token"}

    given.edit_server = later
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    given.edit_server = adding(issuer="https://evil.example")
    await given.denied(oauth(store, login=None), "another issuer")
    assert given.counts("POST /token") == 1


async def test_an_internal_metadata_url_in_a_challenge_is_not_fetched(given: World) -> None:
    for place in ("https://169.254.169.254/latest", "http://10.0.0.1/", "file:///etc/passwd"):
        given.challenge = {"resource_metadata": place}
        await given.denied(oauth())
    assert given.counts("GET /.well-known") == 0


async def test_a_failing_metadata_request_does_not_trigger_2025_03_26_defaults(given: World) -> None:
    """The defaults of MCP 2025-03-26 apply to a server without metadata, not to a failing server."""
    given.edit_resource = lambda document: 502
    assert (await given.denied(oauth())).is_temporary
    assert given.counts("GET /authorize") == given.counts("POST /register") == 0


# --- identity and registration of the client ------------------------------------------------------------------


async def test_a_client_of_one_issuer_is_not_used_with_another_issuer(given: World, other: World) -> None:
    await given.denied(oauth(client=ClientSecret("known", other.issuer, secret="of-the-other")), "is known to")
    store, loose = MemoryStore(), KnownClient("loose")
    await given.let_in(oauth(store, client=loose))
    given.edit_resource = adding(authorization_servers=[other.issuer])
    given.tokens.clear()
    await given.denied(oauth(store, client=loose), "is known to")
    assert other.counts("GET /authorize") == other.counts("POST /token") == 0


async def test_a_changed_issuer_requires_a_new_registration_and_token(given: World, other: World) -> None:
    auth = oauth()
    given.challenge = {"scope": "scope-of-given"}
    await call(given.url, auth)
    tokens = dict(given.tokens)
    given.edit_resource = adding(authorization_servers=[other.issuer])
    given.challenge = {"scope": "scope-of-other"}
    given.tokens, given.families = other.tokens, other.families
    assert await given.let_in(auth) in other.tokens
    assert len(given.registered) == len(other.registered) == 1
    assert [form["grant_type"] for form in other.forms] == ["authorization_code"]
    assert other.queries[0]["scope"] == "scope-of-other"
    sent = " ".join(str(form) for form in other.forms)
    assert not any(one in sent for one in (*tokens, *given.refreshes))


@pytest.mark.parametrize("status", [400, 403, 500])
async def test_the_error_of_a_rejected_registration_contains_the_reason(given: World, status: int) -> None:
    play = given.play_issuing

    async def rejecting(heard: Heard) -> None:
        said = {"error": "invalid_redirect_uri", "error_description": "no\nloopback"}
        await (heard.json(said, status) if heard.path == "/register" else play(heard))

    given.issuing.play = rejecting
    error = await given.denied(oauth(), "does not register this client")
    assert "invalid_redirect_uri: no\\nloopback" in str(error)
    assert error.is_temporary == (status == 500)


async def test_a_registration_unknown_to_the_server_is_repeated(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    given.refreshes.clear()
    unknown = (401, {"error": "invalid_client"})
    given.answer_token = lambda form, heard: unknown if form.get("client_id") == "client-1" else None
    await given.let_in(oauth(store))
    assert len(given.registered) == 2


async def test_a_login_by_an_unknown_client_is_repeated_after_a_registration(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    for key in await store.keys():
        if key.resource:  # only the registration is left
            await put(store, key, None)
    unknown = (401, {"error": "invalid_client"})
    given.answer_token = lambda form, heard: unknown if form.get("client_id") == "client-1" else None
    await given.let_in(oauth(store))
    assert [query["client_id"] for query in given.queries] == ["client-1", "client-1", "client-2"]


async def test_a_refresh_by_an_unknown_client_is_followed_by_a_registration(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.tokens.clear()
    unknown = (401, {"error": "invalid_client"})
    given.answer_token = lambda form, heard: unknown if form.get("client_id") == "client-1" else None
    await given.let_in(oauth(store))
    assert [query["client_id"] for query in given.queries] == ["client-1", "client-2"]


async def test_a_refused_client_of_the_user_does_not_delete_a_registration(given: World) -> None:
    store = MemoryStore()
    await call(given.url, oauth(store))
    given.answer_token = lambda form, heard: (401, {"error": "invalid_client"})
    await given.denied(oauth(store, client=KnownClient("mistyped")), "invalid_client")
    given.answer_token = lambda form, heard: None
    given.tokens.clear()
    await given.let_in(oauth(store, login=None))


@pytest.mark.parametrize("method", ["none", "client_secret_post"])
async def test_tokens_are_refreshed_by_the_registration_that_they_were_issued_to(
    given: World, other: World, method: str
) -> None:
    """Another redirect URI, for example because a port is taken, makes another registration at the same issuer."""
    given.edit_server = adding(token_endpoint_auth_methods_supported=[method])
    other.edit_resource = adding(authorization_servers=[given.issuer])
    other.tokens, other.families = given.tokens, given.families
    store = MemoryStore()
    await call(given.url, oauth(store))
    await call(other.url, oauth(store, login=Manual(agree, "http://127.0.0.1:7778/callback")))
    assert len(given.registered) == 2
    given.tokens.clear()
    for one in (given, other):
        await one.let_in(oauth(store, login=None))


async def test_the_client_that_a_user_named_is_stored_and_refreshes_its_tokens(given: World) -> None:
    given.edit_server = without("registration_endpoint")
    asked: list[str] = []

    async def ask(*question: str) -> KnownClient:
        asked.extend(question)
        return ClientSecret("named", secret=SECRET)

    store = MemoryStore()
    await given.let_in(oauth(store, ask_client=ask))
    given.tokens.clear()
    await given.let_in(oauth(store, ask_client=ask))
    given.tokens.clear()
    given.families.clear()
    await given.let_in(oauth(store, ask_client=ask))
    assert asked == [given.issuer, CALLBACK]
    kinds = ["authorization_code", "refresh_token", "refresh_token", "authorization_code"]
    assert [form["grant_type"] for form in given.forms] == kinds
    assert {form["client_secret"] for form in given.forms} == {SECRET}


# --- quirks of servers ----------------------------------------------------------------------------------------


async def test_server_quirks_apply_only_to_the_configured_issuer(given: World) -> None:
    given.edit_server = without("code_challenge_methods_supported")
    await given.let_in(oauth(quirks={given.issuer: ServerQuirks(omit_resource=True, assume_pkce=True)}))
    assert "resource" not in {**given.queries[0], **given.forms[0]}
    assert given.queries[0]["code_challenge_method"] == "S256"
    await given.denied(oauth(quirks={f"{given.issuer}/": ServerQuirks(assume_pkce=True)}), "PKCE")


SLASH = ServerQuirks(ignore_final_slash=True)
FIX = 'if they are one: --ignore-final-slash, "ignoreFinalSlash" or ServerQuirks(ignore_final_slash=True)'


@pytest.mark.parametrize("named", ["resource", "server", "response", "settings"])
async def test_a_final_slash_of_an_issuer_is_ignored_only_where_a_quirk_says_so(given: World, named: str) -> None:
    """Each of the places may write the issuer with another final slash than the other places."""
    issuer, other = given.issuer, f"{given.issuer}/"
    ours = other if named == "settings" else issuer
    if named == "resource":
        given.edit_resource = lambda document: document | {"authorization_servers": [other]}
    elif named == "server":
        given.edit_server = lambda document: document | {"issuer": other}
    elif named == "response":
        given.edit_response = lambda back: back | {"iss": other}
    client = KnownClient("a", ours)
    error = await given.denied(oauth(client=client), FIX)
    assert f"{issuer}/" in str(error).replace(f"{issuer}/.well-known", "")
    assert re.search(rf"{re.escape(issuer)}(?![\w/])", str(error))
    auth = oauth(client=client, quirks={ours: SLASH})
    token = await given.let_in(auth)
    given.tokens.clear()
    assert await given.let_in(auth) != token
    assert [form["grant_type"] for form in given.forms] == ["authorization_code", "refresh_token"]
    await auth.logout(given.url)
    assert given.counts("POST /revoke") == 2
    await given.denied(oauth(client=client, quirks={"https://other.example": SLASH}), FIX)


async def test_another_issuer_than_one_with_a_final_slash_stays_another_issuer(given: World) -> None:
    given.edit_server = lambda document: document | {"issuer": f"{given.issuer}//"}
    await given.denied(oauth(quirks={given.issuer: SLASH}), "names another issuer")


async def test_urls_that_differ_in_the_query_have_logins_of_their_own(given: World) -> None:
    store = MemoryStore()
    tokens = [await call(f"{given.url}{query}", oauth(store)) for query in ("?tenant=a", "?tenant=b", "", "?tenant=a")]
    assert tokens[0] == tokens[3]
    assert len({str(one) for one in tokens}) == 3
    assert len(given.queries) == 3


# --- secrets --------------------------------------------------------------------------------------------------


async def test_no_secret_is_in_logs_errors_or_representations(given: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryStore()
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


async def test_the_timeout_excludes_the_login_which_can_be_cancelled(given: World) -> None:
    await given.let_in(oauth(login=slowly(2)), timeout=1.5)
    with anyio.move_on_after(0.5) as scope:
        await call(given.url, oauth(login=slowly(3600)))
    assert scope.cancelled_caught


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_secret_echoed_in_an_error_is_not_shown(given: World, method: str) -> None:
    secret = f"{SECRET}+more"
    pair = base64.b64encode(f"machine:{quote_plus(secret)}".encode()).decode()
    for echoed in (secret, pair):
        said = {"error": "invalid_client", "error_description": f"I know no {echoed}"}
        given.answer_token = lambda form, heard, said=said: (401, said)  # type: ignore[misc]
        client = ClientSecret("machine", given.issuer, secret=secret, method=method)
        error = await given.denied(ClientCredentials(client))
        assert (echoed in str(error)) == (echoed == pair and method == "client_secret_post")  # not sent


async def test_an_error_may_name_the_client_and_its_scopes(given: World) -> None:
    reason = "the application machine-one is not granted reports:read"
    given.answer_token = lambda form, heard: (400, {"error": "invalid_scope", "error_description": reason})
    client = ClientSecret("machine-one", given.issuer, secret=SECRET)
    await given.denied(ClientCredentials(client, scopes=["reports:read"]), reason)


async def test_concurrent_processes_bind_a_client_to_the_same_issuer(given: World) -> None:
    """The second process to store the issuer of a client detects the conflict."""

    class Raced(MemoryStore):
        async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
            if key == Key("", "", "desk") and old is None:
                await super().replace(key, None, {"issuer": "https://other.example"})
            return await super().replace(key, old, new)

    await given.denied(oauth(Raced(), client=KnownClient("desk")), "is known to https://other.example")
    assert given.counts("GET /authorize") == 0
