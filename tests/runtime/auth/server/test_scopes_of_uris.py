"""The scopes of a resource are needed whichever way its URI is written, and by whichever route it is reached."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from httpx2 import ASGITransport, AsyncClient
from hypothesis import HealthCheck, given, settings

from mcp_bindgen import v2026_07_28
from mcp_bindgen.app import App
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.cluster.broadcasts import Recorder
from mcp_bindgen.http.server.access import GuardedService, operations_named
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import Identity
from mcp_bindgen.runtime.protocol.access import InsufficientScope, RequestOrigin
from mcp_bindgen.runtime.protocol.jsonrpc import typed_params
from mcp_bindgen.runtime.protocol.request_scope import Negotiated, RequestScope
from tests.runtime.core.test_uris import spellings
from tests.support.http_wires import listening
from tests.support.protected import LATEST, STATELESS, Protected, answer, running, stateless

pytestmark = pytest.mark.anyio

KEYS = {
    "nothing-is-allowed-to-it": Identity(subject="bob"),
    "everything-is-allowed-it": Identity(subject="al", scopes=frozenset({"pay", "board", "vault"})),
}
NOTHING, EVERYTHING = KEYS
RULES = {("resources/read", "Note://Board"): ["board"], ("resources/subscribe", "note://board"): ["board"]}


def secret() -> str:
    return "secret"


def named(name: str) -> str:
    return name


def made() -> App:
    app = App("notes", dynamic={"contents"})

    @app.resource("note://payroll", scopes=["pay"])
    def payroll() -> str:
        return "the payroll"

    @app.resource("note://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    @app.resource("note://all/{+path}")
    def any_note(path: str) -> str:
        return f"any {path}"

    app.add_resource("note://all/hidden", secret, name="hidden", scopes=["pay"])

    @app.resource("Vault://Safe/%7Ekeys/{name}", scopes=["vault"])
    def key(name: str) -> str:
        return f"key {name}"

    @app.resource("vault://{+path}")
    def open_vault(path: str) -> str:
        return f"open {path}"

    return app


@pytest.fixture(scope="module")
def server() -> Iterator[Protected]:
    with running(StaticTokens(KEYS), servers=made().servers(), scopes=RULES, implies={}) as found:
        yield found


def asked(server: Protected, method: str, token: str, session: dict[str, str] | None, **params: Any) -> Any:
    if session is not None:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return server.post(message, token=token, headers=session)
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
    if "uri" in params:
        headers["mcp-name"] = params["uri"] if params["uri"].isprintable() and params["uri"].isascii() else "x"
    return server.post(stateless(method, **params), token=token, headers=headers)


EQUAL = [
    "note://payroll",
    "note://%70ayroll",
    "NOTE://payroll",
    "note://PayRoll",
    "note://%50ay%72oll",
    "%6eote://payroll",
]
READINGS = [
    "note://%2570ayroll",
    "note://payroll%00",
    "note://payroll?",
    "note://payroll#x",
    "note://payroll/",
    "note://payroll.",
    "note:payroll",
    "note:///payroll",
    "note://x%2F..%2Fpayroll",
    "note://all/..%2Fpayroll",
    "note://all/%252e%252e%252fpayroll",
    "note://all/../payroll",
    "note://board",
    "note://%62oard",
    "NOTE://BOARD",
    "vault://safe/~keys/a",
    "vault://SAFE/%7ekeys/a",
    "vault://safe/x/../~keys/a",
    "vault://safe/%2e%2e/~keys/a",
    "vault://safe/~keys%2Fa",
    "vault://safe%2F~keys%2Fa",
    "vault://safe/x%2F..%2F~keys/a",
    "vault://safe//~keys//a",
    "vault:///safe/~keys/a",
    "vault:safe/~keys/a",
    "vault://safe/~keys/a/",
    "vault://safe./~keys/a",
    "vault://safe%5C~keys%5Ca",
    "vault://safe/~keys/a?x#y",
    "vault://x%2F..%2Fsafe/~keys/a",
    "vault://x%2F..%2Fsafe//~keys%2Fb%252Fc",
    "vault://user@safe/~keys/a",
    "note://user@payroll",
]


@pytest.mark.parametrize("uri", EQUAL + READINGS)
def test_no_spelling_evades_a_rule(server: Protected, uri: str) -> None:
    for session in (None, server.session(NOTHING), server.session(NOTHING, "2025-03-26")):
        for method in ("resources/read", "resources/subscribe"):
            if session is not None or method == "resources/read":
                assert asked(server, method, NOTHING, session, uri=uri).status_code == 403, method
    followed = {"resourceSubscriptions": ["note://other", uri]}
    assert asked(server, "subscriptions/listen", NOTHING, None, notifications=followed).status_code == 403


def test_every_spelling_reaches_the_same_resource(server: Protected) -> None:
    for session in (None, server.session(EVERYTHING), server.session(EVERYTHING, "2025-03-26")):
        for uri in EQUAL:
            (found,) = answer(asked(server, "resources/read", EVERYTHING, session, uri=uri))["result"]["contents"]
            assert (found["text"], found["uri"]) == ("the payroll", uri)
        for uri in ("VAULT://SAFE/%7Ekeys/Ab", "vault://safe/x/../~keys/%41b"):
            found = answer(asked(server, "resources/read", EVERYTHING, session, uri=uri))["result"]["contents"][0]
            assert found["text"] == "key Ab"


@pytest.mark.parametrize(
    "uri",
    [
        "note://other",
        "note://payrolls",
        "note://a%20b",
        "note://C%23",
        "vault://safe/keys/a",
        "vault://safe/~keys",
        "vault://safe/~keys/a/b",
        "vault://user@keys/a?x",
    ],
)
def test_other_resources_need_no_scopes(server: Protected, uri: str) -> None:
    for session in (None, server.session(NOTHING)):
        assert asked(server, "resources/read", NOTHING, session, uri=uri).status_code == 200


def test_a_value_keeps_its_case(server: Protected) -> None:
    found = answer(asked(server, "resources/read", NOTHING, None, uri="NOTE://Gr%6Fceries"))
    assert found["result"]["contents"][0]["text"] == "note Groceries"


def test_a_uri_that_is_too_long_is_refused(server: Protected) -> None:
    uri = "note://payroll?" + "x" * 70_000
    for session in (None, server.session(EVERYTHING)):
        method = "subscriptions/listen" if session is None else "resources/read"
        params = {"notifications": {"resourceSubscriptions": [uri]}} if session is None else {"uri": uri}
        refused = asked(server, method, EVERYTHING, session, **params).json()
        assert (refused["error"]["code"], "too long" in refused["error"]["message"]) == (-32602, True)


def test_two_spellings_cannot_be_two_resources() -> None:
    app = made()
    with pytest.raises(ValueError, match="already"):
        app.add_resource("NOTE://%70ayroll", secret, name="open")
    app.remove_resource("NOTE://%70ayroll")
    app.add_resource("NOTE://%70ayroll", secret, name="open")


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(spellings())
def test_scopes_and_handlers_of_all_spellings_are_the_same(pair: tuple[str, str]) -> None:
    uri, other = pair
    app = App("notes")
    app.add_resource(uri, secret, name="secret", scopes=["pay"])
    app.add_resource("note://{+name}", named, name="rest")
    (contract_server, *_) = app.servers()
    access_policy = ResourceServer("https://x/mcp", StaticTokens(KEYS), scopes={("resources/read", other): ["board"]})
    service = GuardedService([contract_server], policy=access_policy)
    for spelling in pair:
        needed = service.needed_scopes(contract_server.revision, operations_named("resources/read", {"uri": spelling}))
        assert needed == {"pay", "board"}
        (found, *_), *_ = contract_server._candidates(spelling)  # type: ignore[attr-defined]
        assert found.spec.name == uri


def test_names_of_tools_are_compared_exactly() -> None:
    app = App("tools")
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    app.add_tool(secret, name=composed, scopes=["pay"])
    app.add_tool(secret, name=decomposed)
    with running(StaticTokens(KEYS), servers=app.servers(), scopes={}, implies={}) as server:
        session = server.session(NOTHING)
        for name, status in ((composed, 403), (decomposed, 200)):
            assert asked(server, "tools/call", NOTHING, session, name=name).status_code == status


class Exact(v2026_07_28.Server):
    """Protects a URI by an override that compares texts."""

    info = v2026_07_28.types.Implementation(name="exact", version="1")

    def required_scopes(self, method: str, name: str | None) -> list[str]:
        return ["pay"] if name == "note://payroll" else []

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        return {"contents": [{"uri": params.uri, "text": params.uri}], "ttlMs": 0, "cacheScope": "private"}


def test_overrides_are_asked_for_canonical_uris() -> None:
    with running(StaticTokens(KEYS), servers=[Exact()], scopes={}, implies={}) as server:
        for uri in EQUAL:
            assert asked(server, "resources/read", NOTHING, None, uri=uri).status_code == 403
        assert asked(server, "resources/read", NOTHING, None, uri="note://%6Fther").status_code == 200


# --- who hears of changes -------------------------------------------------------------------------------------


async def heard(port: int, body: Any, headers: dict[str, str], change: Callable[[str], None], last: str) -> list[str]:
    """The URIs that a stream tells of changes, up to the last one."""
    found: list[str] = []
    async with httpx2.AsyncClient(timeout=10, trust_env=False) as client:
        method = "GET" if body is None else "POST"
        async with client.stream(method, f"http://127.0.0.1:{port}/mcp", json=body, headers=headers) as response:
            assert response.status_code == 200
            if body is None:
                change(last)
            async for line in response.aiter_lines():
                if "acknowledged" in line:
                    change(last)
                elif "resources/updated" in line:
                    found.append(json.loads(line[6:])["params"]["uri"])
                    if found[-1] == last:
                        break
    return found


async def test_who_follows_a_folder_hears_of_no_resource_that_needs_more_scopes() -> None:
    app = made()

    changed = ["note://payroll", "NOTE://%70ayroll", "note://board", "note://all/hidden"]

    def change(last: str) -> None:
        for uri in (*changed, "vault://safe/~keys/a", "note://other", last):
            app.updated(uri)

    http = HttpApp(*app.servers(), auth=ResourceServer("http://127.0.0.1/mcp", StaticTokens(KEYS), scopes=RULES))
    async with listening(http) as port:
        url, last = f"http://127.0.0.1:{port}/mcp", "note://last"
        for token, expected in ((NOTHING, ["note://other", last]), (EVERYTHING, [*changed, "note://other", last])):
            headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream, application/json"}
            told = {**headers, "mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
            body = stateless("subscriptions/listen", notifications={"resourceSubscriptions": ["note://"]})
            assert await heard(port, body, told, change, last) == expected
            hidden = changed[-1:] * (token == EVERYTHING)
            async with AsyncClient(timeout=10, trust_env=False) as client:

                async def post(message: dict[str, Any], client: Any = client, headers: Any = headers) -> Any:
                    return await client.post(url, json={"jsonrpc": "2.0", **message}, headers=headers)

                params = {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
                begun = await post({"id": 0, "method": "initialize", "params": params})
                headers |= {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": LATEST}
                await post({"method": "notifications/initialized"})
                for uri in ("note://all/x/..", "NOTE://%6Fther"):
                    assert "result" in answer(
                        await post({"id": 1, "method": "resources/subscribe", "params": {"uri": uri}})
                    )
                assert await heard(port, None, headers, change, "note://other") == [*hidden, "note://other"]
                await post({"id": 2, "method": "resources/unsubscribe", "params": {"uri": "note://OTHER"}})
                assert "result" in answer(
                    await post({"id": 3, "method": "resources/subscribe", "params": {"uri": "note://end"}})
                )
                assert await heard(port, None, headers, change, "note://end") == [*hidden, "note://end"]


# --- limits of filters ----------------------------------------------------------------------------------------


async def test_a_filter_with_too_many_uris_is_refused_before_anything_is_done_with_them() -> None:
    calls: list[str | None] = []

    class Counting(Exact):
        def required_scopes(self, method: str, name: str | None) -> list[str]:
            calls.append(name)
            return []

    access_policy = ResourceServer("http://localhost/mcp", StaticTokens(KEYS), scopes={})
    for auth in (access_policy, None):
        http = HttpApp(Counting(), auth=auth) if auth else HttpApp(*made_open().servers())
        async with AsyncClient(transport=ASGITransport(http), base_url="http://localhost") as client:
            for uris in (
                [f"note://{number}" for number in range(90_000)],
                [f"note://{n}/" + "x" * 60_000 for n in range(5)],
            ):
                headers = {
                    "authorization": f"Bearer {EVERYTHING}",
                    "accept": "text/event-stream, application/json",
                    "mcp-protocol-version": STATELESS,
                    "mcp-method": "subscriptions/listen",
                }
                body = stateless("subscriptions/listen", notifications={"resourceSubscriptions": uris})
                refused = (await client.post("/mcp", json=body, headers=headers)).json()
                assert refused["error"]["code"] == -32602
                assert refused["error"]["message"].startswith("too many subscriptions")
                assert (refused["id"], calls) == (1, [])


async def test_others_run_while_a_session_has_a_large_filter_checked() -> None:
    class Slow(Exact):
        def required_scopes(self, method: str, name: str | None) -> list[str]:
            time.sleep(0.001)
            return super().required_scopes(method, name)

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.sleep(0)

    service = GuardedService([Slow()], policy=ResourceServer("http://localhost/mcp", StaticTokens(KEYS), scopes={}))
    dispatcher = service.dispatchers[STATELESS]
    filtered = {"resourceSubscriptions": [*(f"note://{number}" for number in range(200)), "note://payroll"]}
    method = dispatcher.revision.request("subscriptions/listen")
    params = typed_params(method, stateless("subscriptions/listen", notifications=filtered)["params"])
    handle = service.find(dispatcher, dispatcher.routes[method.name])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        with pytest.raises(InsufficientScope):
            await handle(RequestScope(Recorder(Negotiated(dispatcher)), RequestOrigin(KEYS[NOTHING]), 1), params)
        tasks.cancel_scope.cancel()
    assert turns > 10


def made_open() -> App:
    app = App("notes", dynamic={"contents"})
    app.add_resource("note://{name}", named, name="note")
    return app
