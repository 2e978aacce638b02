"""The scopes of a resource are required for every spelling of its URI and for every operation that reaches it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from httpx2 import ASGITransport, AsyncClient
from hypothesis import HealthCheck, given, settings

from mcp_bindgen import v2026_07_28
from mcp_bindgen.app import App
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.http.server.access import HttpEndpoint, operations_named
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import Identity
from mcp_bindgen.runtime.protocol.access import InsufficientScope
from mcp_bindgen.runtime.protocol.events import Requested
from mcp_bindgen.runtime.protocol.jsonrpc import typed_params
from mcp_bindgen.runtime.session.endpoint import all_servers
from tests.app.serving import served
from tests.harness.effort import each
from tests.harness.http_wires import listening
from tests.harness.protected import LATEST, STATELESS, Protected, answer, running, stateless
from tests.runtime.protocol.test_uris import spellings

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


def pathed(path: str) -> str:
    return path


def made() -> App:
    app = App("notes", dynamic={"contents"})
    app.add_resource("note://payroll", secret, name="payroll", scopes=["pay"])
    app.add_resource("note://{name}", named, name="note")
    app.add_resource("note://all/{+path}", pathed, name="any")
    app.add_resource("note://all/hidden", secret, name="hidden", scopes=["pay"])
    app.add_resource("Vault://Safe/%7Ekeys/{name}", named, name="key", scopes=["vault"])
    app.add_resource("vault://{+path}", pathed, name="open")
    return app


@pytest.fixture(scope="module")
def server() -> Iterator[Protected]:
    with running(StaticTokens(KEYS), servers=[made()], scopes=RULES, implies={}) as found:
        yield found


SAME = "note://payroll note://%70ayroll NOTE://payroll note://PayRoll note://%50ay%72oll %6eote://payroll"
EQUAL = SAME.split()
READINGS = """
note://%2570ayroll note://payroll%00 note://payroll? note://payroll#x note://payroll/ note://payroll. note:payroll
note:///payroll note://x%2F..%2Fpayroll note://all/..%2Fpayroll note://all/%252e%252e%252fpayroll note://all/../payroll
note://board note://%62oard NOTE://BOARD note://user@payroll
vault://safe/~keys/a vault://SAFE/%7ekeys/a vault://safe/x/../~keys/a vault://safe/%2e%2e/~keys/a vault://safe/~keys%2Fa
vault://safe%2F~keys%2Fa vault://safe/x%2F..%2F~keys/a vault://safe//~keys//a vault:///safe/~keys/a vault:safe/~keys/a
vault://safe/~keys/a/ vault://safe./~keys/a vault://safe%5C~keys%5Ca vault://safe/~keys/a?x#y
vault://x%2F..%2Fsafe/~keys/a vault://x%2F..%2Fsafe//~keys%2Fb%252Fc vault://user@safe/~keys/a
"""


@pytest.mark.full
@each("uri", [*EQUAL, *READINGS.split()])
def test_no_spelling_of_a_uri_bypasses_a_scope_rule(server: Protected, uri: str) -> None:
    for session in (None, server.session(NOTHING), server.session(NOTHING, "2025-03-26")):
        for method in ("resources/read", "resources/subscribe"):
            if session is not None or method == "resources/read":
                assert server.ask(method, NOTHING, session, uri=uri).status_code == 403, method
    followed = {"resourceSubscriptions": ["note://other", uri]}
    assert server.ask("subscriptions/listen", NOTHING, None, notifications=followed).status_code == 403


def test_every_spelling_reaches_the_same_resource(server: Protected) -> None:
    for session in (None, server.session(EVERYTHING), server.session(EVERYTHING, "2025-03-26")):
        for uri in EQUAL:
            (found,) = answer(server.ask("resources/read", EVERYTHING, session, uri=uri))["result"]["contents"]
            assert (found["text"], found["uri"]) == ("secret", uri)
        for uri in ("VAULT://SAFE/%7Ekeys/Ab", "vault://safe/x/../~keys/%41b"):
            found = answer(server.ask("resources/read", EVERYTHING, session, uri=uri))["result"]["contents"][0]
            assert found["text"] == "Ab"


OTHERS = "note://other note://payrolls note://a%20b note://C%23 vault://safe/keys/a vault://safe/~keys "
OTHERS += "vault://safe/~keys/a/b vault://user@keys/a?x"


@each("uri", OTHERS.split())
def test_other_resources_need_no_scopes(server: Protected, uri: str) -> None:
    for session in (None, server.session(NOTHING)):
        assert server.ask("resources/read", NOTHING, session, uri=uri).status_code == 200


def test_a_template_variable_keeps_its_case(server: Protected) -> None:
    found = answer(server.ask("resources/read", NOTHING, None, uri="NOTE://Gr%6Fceries"))
    assert found["result"]["contents"][0]["text"] == "Groceries"


def test_a_uri_that_is_too_long_is_refused(server: Protected) -> None:
    uri = "note://payroll?" + "x" * 70_000
    for session in (None, server.session(EVERYTHING)):
        method = "subscriptions/listen" if session is None else "resources/read"
        params = {"notifications": {"resourceSubscriptions": [uri]}} if session is None else {"uri": uri}
        refused = server.ask(method, EVERYTHING, session, **params).json()
        assert (refused["error"]["code"], "too long" in refused["error"]["message"]) == (-32602, True)


def test_two_spellings_cannot_be_two_resources() -> None:
    app = made()
    with pytest.raises(ValueError, match="already"):
        app.add_resource("NOTE://%70ayroll", secret, name="open")
    app.remove_resource("NOTE://%70ayroll")
    app.add_resource("NOTE://%70ayroll", secret, name="open")


async def _read(app: App, *uris: str) -> list[str]:
    async with served(app) as client:
        return [(await client.read_resource(uri)).contents[0].text for uri in uris]


@pytest.mark.full
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(spellings())
def test_scopes_and_handlers_of_all_spellings_are_the_same(pair: tuple[str, str]) -> None:
    uri, other = pair
    app = App("notes")
    app.add_resource(uri, secret, name="secret", scopes=["pay"])
    app.add_resource("note://{+name}", named, name="rest")
    (contract_server, *_) = all_servers([app])
    access_policy = ResourceServer("https://x/mcp", StaticTokens(KEYS), scopes={("resources/read", other): ["board"]})
    service = HttpEndpoint([contract_server], access_policy=access_policy)
    assert anyio.run(_read, app, *pair) == ["secret", "secret"]
    for spelling in pair:
        needed = service.needed_scopes(contract_server.revision, operations_named("resources/read", {"uri": spelling}))
        assert needed == {"pay", "board"}


def test_names_of_tools_are_compared_exactly() -> None:
    app = App("tools")
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    app.add_tool(secret, name=composed, scopes=["pay"])
    app.add_tool(secret, name=decomposed)
    with running(StaticTokens(KEYS), servers=[app], scopes={}, implies={}) as server:
        session = server.session(NOTHING)
        for name, status in ((composed, 403), (decomposed, 200)):
            assert server.ask("tools/call", NOTHING, session, name=name).status_code == status


class Exact(v2026_07_28.Server):
    """Server that protects a URI by comparing strings."""

    info = v2026_07_28.types.Implementation(name="exact", version="1")

    def required_scopes(self, method: str, name: str | None) -> list[str]:
        return ["pay"] if name == "note://payroll" else []

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        return {"contents": [{"uri": params.uri, "text": params.uri}], "ttlMs": 0, "cacheScope": "private"}


def test_an_override_of_required_scopes_gets_canonical_uris() -> None:
    with running(StaticTokens(KEYS), servers=[Exact()], scopes={}, implies={}) as server:
        for uri in EQUAL:
            assert server.ask("resources/read", NOTHING, None, uri=uri).status_code == 403
        assert server.ask("resources/read", NOTHING, None, uri="note://%6Fther").status_code == 200


def test_a_tool_that_was_searched_needs_the_scopes_of_its_endpoint() -> None:
    app = App("many", tool_search=True)
    app.add_tool(secret)
    servers, rules = [app.served()], {("tools/call", "secret"): ["pay"]}
    with running(StaticTokens(KEYS), servers=servers, scopes=rules, implies={}) as server:
        assert HttpApp(*servers, auth=ResourceServer(server.url, StaticTokens(KEYS)))  # another endpoint
        for token, status in ((NOTHING, 403), (EVERYTHING, 200)):
            found = server.call("call_tool", token=token, arguments={"name": "secret"})
            assert found.status_code == status, found.text


# --- recipients of change notifications -----------------------------------------------------------------------


async def heard(
    client: AsyncClient, change: Callable[[str], None], last: str, session: dict[str, str] | None = None
) -> list[str]:
    """Return the updated URIs on a stream up to `last`: of a session, or of a stateless subscription to a folder."""
    found, told = list[str](), {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
    body = stateless("subscriptions/listen", notifications={"resourceSubscriptions": ["note://"]})
    options: Any = {"headers": session} if session else {"json": body, "headers": told}
    async with client.stream("GET" if session else "POST", "/mcp", **options) as response:
        assert response.status_code == 200
        if session:
            change(last)
        async for line in response.aiter_lines():
            if "acknowledged" in line:
                change(last)
            elif "resources/updated" in line:
                found.append(json.loads(line[6:])["params"]["uri"])
                if found[-1] == last:
                    break
    return found


def policy(**rules: Any) -> ResourceServer:
    return ResourceServer("http://127.0.0.1/mcp", StaticTokens(KEYS), **rules)


ENDPOINTS: dict[str, Callable[..., object]] = {
    "none": lambda *servers: "none",
    "lax": lambda *servers: HttpApp(*servers, auth=policy()),
    "lax without sessions": lambda *servers: HttpApp(*servers, auth=policy(), sessions=False),
    "lax SSE": lambda *servers: SseApp(*servers, auth=policy()),
    "strict": lambda *servers: HttpApp(*servers, auth=policy(scopes={"resources/subscribe": ["root"]})),
}
"""Make another endpoint of the same servers."""


@pytest.mark.full
@each("order", ["before", "after"])
@each("other", ENDPOINTS)
@each("token", KEYS)
async def test_a_folder_subscription_excludes_resources_that_need_more_scopes(
    token: str, other: str, order: str
) -> None:
    app, changed = made(), ["note://payroll", "NOTE://%70ayroll", "note://board", "note://all/hidden"]
    servers = [app.served()]

    def change(last: str) -> None:
        for uri in (*changed, "vault://safe/~keys/a", "note://other", last):
            app.updated(uri)

    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream, application/json"}
    before = order == "before" and ENDPOINTS[other](*servers)
    http = HttpApp(*servers, auth=policy(scopes=RULES))
    assert before or ENDPOINTS[other](*servers)
    async with (
        listening(http) as port,
        AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False, headers=headers) as client,
    ):
        session: dict[str, str] = {}

        async def post(method: str, **params: Any) -> Any:
            body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
            body |= {} if "notifications" in method else {"id": 1}
            return await client.post("/mcp", json=body, headers=session)

        seen = changed * (token == EVERYTHING)
        assert await heard(client, change, "note://last") == [*seen, "note://other", "note://last"]
        info = {"name": "raw", "version": "1"}
        begun = await post("initialize", protocolVersion=LATEST, capabilities={}, clientInfo=info)
        session |= {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": LATEST}
        await post("notifications/initialized")
        for uri in ("note://all/x/..", "NOTE://%6Fther"):
            assert "result" in answer(await post("resources/subscribe", uri=uri))
        assert await heard(client, change, "note://other", session) == [*seen[-1:], "note://other"]
        await post("resources/unsubscribe", uri="note://OTHER")
        assert "result" in answer(await post("resources/subscribe", uri="note://end"))
        assert await heard(client, change, "note://end", session) == [*seen[-1:], "note://end"]


# --- limits of filters ----------------------------------------------------------------------------------------


async def test_a_filter_with_too_many_uris_is_refused_before_they_are_checked() -> None:
    calls: list[str | None] = []

    class Counting(Exact):
        def required_scopes(self, method: str, name: str | None) -> list[str]:
            calls.append(name)
            return []

    headers = {"authorization": f"Bearer {EVERYTHING}", "accept": "text/event-stream, application/json"}
    headers |= {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
    open_app = App("notes", dynamic={"contents"})
    open_app.add_resource("note://{name}", named, name="note")
    guarded = HttpApp(Counting(), auth=ResourceServer("http://localhost/mcp", StaticTokens(KEYS), scopes={}))
    for http in (guarded, HttpApp(open_app)):
        async with AsyncClient(transport=ASGITransport(http), base_url="http://localhost", headers=headers) as client:
            for uris in ([f"note://{n}" for n in range(90_000)], [f"note://{n}/" + "x" * 60_000 for n in range(5)]):
                body = stateless("subscriptions/listen", notifications={"resourceSubscriptions": uris})
                refused = (await client.post("/mcp", json=body)).json()
                assert refused["error"]["code"] == -32602
                assert refused["error"]["message"].startswith("too many subscriptions")
                assert (refused["id"], calls) == (1, [])


async def test_other_tasks_run_while_a_large_filter_is_checked() -> None:
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

    service = HttpEndpoint(
        [Slow()], access_policy=ResourceServer("http://localhost/mcp", StaticTokens(KEYS), scopes={})
    )
    dispatcher = service.dispatchers[STATELESS]
    filtered = {"resourceSubscriptions": [*(f"note://{number}" for number in range(200)), "note://payroll"]}
    method = dispatcher.revision.request("subscriptions/listen")
    params = typed_params(method, stateless("subscriptions/listen", notifications=filtered)["params"])
    listening = Requested(1, dispatcher.routes[method.name], params, dispatcher)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        with pytest.raises(InsufficientScope):
            await service.admit(KEYS[NOTHING], [listening])
        tasks.cancel_scope.cancel()
    assert turns > 10
