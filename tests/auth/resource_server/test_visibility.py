"""Entries that a caller may not use are neither listed nor answered, in every revision and on every way to them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen import v2026_07_28
from mcp_bindgen.app import App, Completion, proxy
from mcp_bindgen.app.overrides import ArgumentOverride, ToolOverride
from mcp_bindgen.gateway import Gateway
from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import Identity
from mcp_bindgen.sqlite import SqliteEventStore
from mcp_bindgen.testing import connected
from tests.harness.checked_connections import STATEFUL, STATELESS, bindings
from tests.harness.effort import each
from tests.harness.protected import LATEST, Protected, answer, running, stateless

ALL = [*STATEFUL, STATELESS]
FENCE = "note://fence"
KINDS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


class Tokens:
    """Verifier of tokens that a test names and changes."""

    def __init__(self, **known: Identity) -> None:
        self.known = known

    async def verify(self, token: str, resource: str) -> Identity | None:
        return self.known.get(token)


def ada(*roles: str, scopes: str = "", issuer: str = "", expires: float | None = None) -> Identity:
    """Return an identity of one user with some roles and scopes."""
    more = {"claims": {"roles": [*roles]}, "scopes": frozenset(scopes.split()), "expires": expires}
    return Identity(subject="ada", issuer=issuer, **more)  # type: ignore[arg-type]


def desk(**options: Any) -> App:
    """Return an app with two entries of each kind, of which one is for the role `admin`."""
    app = App("desk", dynamic={"contents"}, **options)
    tags = {"admin"}

    @app.tool
    def look() -> str:
        return "seen"

    @app.tool(tags=tags)
    def purge() -> str:
        return "gone"

    @app.prompt
    def ask(topic: str) -> str:
        return topic

    @app.prompt(tags=tags)
    def plot(topic: str) -> str:
        return topic

    for uri in ("note://desk", FENCE, "note://desk/secret"):
        app.add_resource(uri, reader(uri), tags=tags if "secret" in uri else ())

    @app.resource("open://{id}")
    def open_(id: str) -> str:
        return id

    @app.resource("secret://{id}", tags=tags)
    def secret(id: str) -> str:
        return id

    @app.completion("plot", "topic")
    @app.completion("secret://{id}", "id")
    def topics(asked: Completion) -> list[str]:
        return ["tea"]

    app.visible(lambda identity: "admin" in identity.claims["roles"], tags=tags)
    return app


def reader(uri: str) -> Any:
    def read() -> str:
        return uri

    read.__name__ = f"read_{uri.rpartition('/')[2]}"
    return read


USERS = {"admin": ada("admin"), "user": ada(), "eve": Identity(subject="eve")}


@pytest.fixture(scope="module")
def server() -> Iterator[Protected]:
    with running(Tokens(**USERS), servers=[desk()], scopes={}, implies={}) as found:
        yield found


def session_of(server: Protected, token: str, revision: str) -> Any:
    return None if revision == STATELESS else server.session(token, revision)


def listed(server: Protected, token: str, session: Any, method: str = "tools/list") -> list[str]:
    member, key = KINDS[method]
    result = answer(server.ask(method, token, session))["result"]
    assert result.get("cacheScope", "private") == "private", "a list that depends on its caller is not shared"
    assert result.get("ttlMs", 0) == 0
    return [entry[key] for entry in result[member]]


# --- lists and calls ------------------------------------------------------------------------------------------


@each("revision", ALL)
def test_a_hidden_entry_is_in_no_list(server: Protected, revision: str) -> None:
    shown = {
        "tools/list": ["look"],
        "prompts/list": ["ask"],
        "resources/list": ["note://desk", FENCE],
        "resources/templates/list": ["open://{id}"],
    }
    hidden = {"tools/list": "purge", "prompts/list": "plot", "resources/list": "note://desk/secret"}
    for token in ("user", "eve", "admin"):  # eve's token lacks the claim that the test reads
        session = session_of(server, token, revision)
        for method, names in shown.items():
            more = [hidden.get(method, "secret://{id}")] if token == "admin" else []
            assert listed(server, token, session, method) == [*names, *more], (token, method)


TOPIC, ID = {"name": "topic", "value": ""}, {"name": "id", "value": ""}
HIDDEN: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "purge"}),
    ("prompts/get", {"name": "plot", "arguments": {"topic": "x"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "plot"}, "argument": TOPIC}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "secret://{id}"}, "argument": ID}),
    *(
        (method, {"uri": uri})
        for method in ("resources/read", "resources/subscribe")
        for uri in ("note://desk/secret", "secret://1", "NOTE://desk/%73ecret", "note://desk/x/../secret")
    ),
]
NAMES = {"purge": "zzz", "plot": "yyy", "secret": "missing", "%73ecret": "missing"}
"""Part of a hidden name -> a part that makes it a name of nothing."""


def renamed(text: str) -> str:
    for name, other in NAMES.items():
        text = text.replace(name, other)
    return text


@each("revision", ALL)
def test_a_hidden_entry_is_answered_like_one_that_does_not_exist(server: Protected, revision: str) -> None:
    sessions = {token: session_of(server, token, revision) for token in USERS}
    for method, params in HIDDEN:
        if method == "resources/subscribe" and revision == STATELESS:
            continue
        for token in ("user", "eve"):
            asked = (params, json.loads(renamed(json.dumps(params))))
            hidden, missing = (server.ask(method, token, sessions[token], **one) for one in asked)
            assert hidden.status_code == missing.status_code
            assert renamed(json.dumps(answer(hidden)["error"])) == json.dumps(answer(missing)["error"]), (method, token)
        assert "result" in answer(server.ask(method, "admin", sessions["admin"], **params)), method
    for token, hint in (("user", ""), ("admin", "; did you mean 'purge'?")):
        wrong = answer(server.ask("tools/call", token, sessions[token], name="purg"))
        assert wrong["error"]["message"] == f"Unknown tool: purg{hint}"


@each("revision", ALL)
def test_the_session_of_another_caller_gives_nothing(server: Protected, revision: str) -> None:
    if revision == STATELESS:
        return
    session = server.session("admin", revision)
    assert server.ask("tools/list", "eve", session).status_code == 404
    assert listed(server, "user", session) == ["look"], "the token of the request counts, not that of the session"
    assert listed(server, "admin", session) == ["look", "purge"]
    wrong = answer(server.ask("tools/call", "user", session, name="purge"))
    assert wrong["error"]["message"] == "Unknown tool: purge"


@each("revision", [STATELESS, LATEST])
def test_a_search_finds_and_calls_only_what_the_caller_may_use(revision: str) -> None:
    with running(Tokens(**USERS), servers=[desk(tool_search=True)], scopes={}, implies={}) as server:
        for token, found in (("user", []), ("admin", ["purge"])):
            session = session_of(server, token, revision)
            ask = partial(server.ask, "tools/call", token, session)
            result = answer(ask(name="search_tools", arguments={"words": "purge"}))["result"]
            assert [tool["name"] for tool in result["structuredContent"]["tools"]] == found
            called = answer(ask(name="call_tool", arguments={"name": "purge"}))
            assert ("Unknown tool: purge" in json.dumps(called)) is (token == "user")
            assert listed(server, token, session) == ["search_tools", "call_tool"]


# --- scopes ---------------------------------------------------------------------------------------------------


def scoped(**options: Any) -> App:
    app = App("files", **options)

    @app.tool
    def look() -> str:
        return "seen"

    @app.tool(scopes=["files:write"])
    def drop() -> str:
        return "gone"

    @app.resource("note://a", scopes=["files:write"])
    def note() -> str:
        return "a"

    return app


@each("revision", [STATELESS, LATEST])
@each("hide", [None, True, False])
def test_scopes_hide_entries_and_a_client_may_still_ask_for_more(hide: bool | None, revision: str) -> None:
    issuer = "https://auth.example.org"
    known = {"key": ada(), "wide_key": ada(scopes="files:write"), "token": ada(issuer=issuer)}
    tokens = Tokens(**known, wide_token=ada(issuer=issuer, scopes="files:write"))
    with running(tokens, servers=[scoped(hide_forbidden=hide)], scopes={}, implies={}) as server:
        for token in tokens.known:
            session = session_of(server, token, revision)
            may = token.startswith("wide")
            is_shown = may or hide is False or (hide is None and token == "token")
            assert listed(server, token, session) == ["look", "drop"][: 1 + is_shown]
            assert listed(server, token, session, "resources/list") == ["note://a"][:is_shown]
            for response in (
                server.ask("tools/call", token, session, name="drop"),
                server.ask("resources/read", token, session, uri="note://a"),
            ):
                if may:
                    assert "result" in answer(response)
                else:
                    assert response.status_code == 403
                    assert 'scope="files:write"' in response.headers["www-authenticate"]
            if session is not None and token == "token":  # the client comes back with the scopes of the challenge
                assert listed(server, "wide_token", session) == ["look", "drop"]
                assert "result" in answer(server.ask("tools/call", "wide_token", session, name="drop"))


def test_scopes_of_the_endpoint_hide_entries_of_keys_that_lack_them() -> None:
    tokens = Tokens(key=ada(), wide=ada(scopes="call"), wider=ada(scopes="call look"))
    rules = {"tools/call": ["call"], ("tools/call", "look"): ["look"]}
    with running(tokens, servers=[desk()], scopes=rules, implies={}) as server:
        assert [listed(server, token, None) for token in tokens.known] == [[], [], ["look"]]


def test_without_hiding_all_callers_get_the_same_lists_and_calls_are_refused_as_before() -> None:
    with running(Tokens(**USERS), servers=[desk(hide_forbidden=False)], scopes={}, implies={}) as server:
        assert [listed(server, token, None) for token in ("user", "admin")] == [["look", "purge"]] * 2
        wrong = answer(server.ask("tools/call", "user", name="purge"))
        assert wrong["error"]["message"] == "Unknown tool: purge"


@each("revision", [STATELESS, LATEST])
def test_a_hidden_entry_asks_for_no_scopes(revision: str) -> None:
    app, tags, secret = App("desk", dynamic={"contents"}), {"admin"}, "note://secret"
    app.add_tool(reader("purge"), name="purge", tags=tags, scopes=["files:write"])
    app.add_resource(secret, reader(secret), tags=tags, scopes=["files:write"])
    app.visible(lambda identity: "admin" in identity.claims["roles"], tags=tags)
    rules = {("tools/call", "purge"): ["root"], "resources/read": ["read"]}
    tokens = Tokens(user=ada(scopes="read"), admin=ada("admin", scopes="read"), narrow=ada())
    with running(tokens, servers=[app], scopes=rules, implies={}) as server:
        asked: list[tuple[str, dict[str, Any], dict[str, str]]] = [
            ("tools/call", {"name": "purge"}, {"admin": "files:write root"}),
            ("resources/read", {"uri": secret}, {"admin": "files:write read", "narrow": "read"}),
        ]
        for method, params, needed in asked:
            for token in tokens.known:
                response = server.ask(method, token, session_of(server, token, revision), **params)
                assert (response.status_code == 403) is (token in needed)
                assert f'scope="{needed.get(token, "")}"' in response.headers.get("www-authenticate", 'scope=""')


# --- notifications --------------------------------------------------------------------------------------------


@contextmanager
def listening(server: Protected, token: str, session: Any, **wanted: Any) -> Generator[Iterator[dict[str, Any]]]:
    """Yield the messages of a stream: of a subscription, or of the GET of a session that follows resources."""
    if session is None:
        told = {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
        body: Any = stateless("subscriptions/listen", notifications=wanted)
        request = partial(server.client.stream, "POST", server.url, json=body)
        accepted = "application/json, text/event-stream"
    else:
        for uri in wanted.get("resourceSubscriptions", ()):
            server.ask("resources/subscribe", token, session, uri=uri)
        told, request, accepted = session, partial(server.client.stream, "GET", server.url), "text/event-stream"
    with request(headers={**told, "accept": accepted, "authorization": f"Bearer {token}"}) as response:
        assert response.status_code == 200, response.read()
        messages = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: {"))
        if session is None:
            assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
        yield messages


def until_fence(messages: Iterator[dict[str, Any]]) -> list[str]:
    """Return the methods or updated URIs of messages before the update of a resource that all may read."""
    found: list[str] = []
    for message in messages:
        params = {key: value for key, value in message.get("params", {}).items() if key != "_meta"}
        found.append(params.get("uri", message["method"]))
        if found[-1] == FENCE:
            return found[:-1]
    raise AssertionError(found)


@each("revision", [STATELESS, *STATEFUL])
def test_changes_of_hidden_resources_are_not_told(revision: str) -> None:
    app = desk()
    tokens = Tokens(**USERS)
    follows = ["note://desk", "note://desk/secret", FENCE]
    with running(tokens, servers=[app], scopes={}, implies={}) as server:
        for token, heard in (("user", []), ("admin", ["note://desk/secret"])):
            session = session_of(server, token, revision)
            with listening(server, token, session, resourceSubscriptions=follows) as messages:
                app.updated("note://desk/secret")
                app.updated(FENCE)
                assert until_fence(messages) == heard
        if revision == STATELESS:
            return
        session = server.session("admin", revision)  # which follows it, and then sends a token without the role
        with listening(server, "admin", session, resourceSubscriptions=follows) as messages:
            server.ask("tools/list", "user", session)
            app.updated("note://desk/secret")
            app.updated(FENCE)
            assert "note://desk/secret" not in until_fence(messages)


TOLD = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


@each("revision", ALL)
def test_clients_hear_of_lists_that_change_with_their_token(revision: str) -> None:
    app = desk()
    later = {"late": ada("admin", expires=9e9 + 1), "renewed": ada("admin", expires=9e9 + 2)}
    tokens = Tokens(first=ada(expires=9e9), same=ada(expires=9e9), **later, **USERS)
    with running(tokens, servers=[app], scopes={}, implies={}) as server:
        session, other = session_of(server, "first", revision), session_of(server, "eve", revision)
        wanted = {**LISTS, "resourceSubscriptions": [FENCE]}
        with listening(server, "first", session, **wanted) as own, listening(server, "eve", other, **wanted) as others:

            def heard_after(token: str) -> set[str]:
                server.ask("tools/call", token, session, name="look")
                app.updated(FENCE)
                told = until_fence(own)
                assert len(told) == len(set(told)), "each list is told once"
                return set(told)

            assert heard_after("first") == set()
            assert heard_after("same") == set()
            assert heard_after("late") == TOLD
            assert heard_after("renewed") == set()
            if revision == STATELESS:
                assert heard_after("first") == set(), "an older token of the user is no change"
            else:
                assert heard_after("first") == TOLD
            assert [until_fence(others) for _ in range(5)] == [[]] * 5, "another user hears nothing of it"


def test_only_lists_that_differ_are_told() -> None:
    app = scoped(dynamic={"contents"}, hide_forbidden=True)
    app.add_resource(FENCE, reader(FENCE))
    app.add_prompt(reader("a"), name="plain")
    issuer = "https://auth.example.org"
    narrow, wide = ada(issuer=issuer, expires=9e9), ada(issuer=issuer, scopes="files:write", expires=9e9 + 1)
    with running(Tokens(narrow=narrow, wide=wide), servers=[app], scopes={}, implies={}) as server:
        wanted = {**LISTS, "resourceSubscriptions": [FENCE]}
        with listening(server, "narrow", None, **wanted) as messages:
            server.ask("tools/list", "wide")
            app.updated(FENCE)
            assert set(until_fence(messages)) == TOLD - {"notifications/prompts/list_changed"}


def test_a_session_that_goes_on_elsewhere_hears_that_its_lists_may_have_changed(tmp_path: Path) -> None:
    app, session = desk(), None
    with closing(SqliteEventStore(tmp_path / "events.db")) as store:
        for token, told in (("user", set()), ("admin", TOLD)):
            with running(Tokens(**USERS), servers=[app], store=store, scopes={}, implies={}) as server:
                session = session or server.session("user")
                with listening(server, token, session, resourceSubscriptions=[FENCE]) as messages:
                    for expected in (told, set()):
                        server.ask("tools/call", token, session, name="look")
                        app.updated(FENCE)
                        assert set(until_fence(messages)) == expected


# --- apps of apps, proxies and gateways -----------------------------------------------------------------------


def test_conditions_hold_for_mounted_and_renamed_entries_at_any_depth() -> None:
    inner, middle, outer = desk(), App("middle"), App("outer")
    outer.visible(lambda identity: identity.subject == "ada", "low_deep_look")
    middle.mount(inner, "deep")
    outer.mount(middle, "low")
    outer.rename_tools({"low_deep_look": "watch", "low_deep_purge": "wipe"})
    shown = {"eve": [], "user": ["watch"], "admin": ["watch", "wipe"]}
    with running(Tokens(**USERS), servers=[outer], scopes={}, implies={}) as server:
        for token, names in shown.items():
            assert listed(server, token, None) == names
            for name in ("watch", "wipe"):
                assert ("result" in answer(server.ask("tools/call", token, name=name))) is (name in names)
            prompts = ["low_deep_ask", "low_deep_plot"]
            assert listed(server, token, None, "prompts/list") == prompts[: 2 if token == "admin" else 1]
            assert listed(server, token, None, "resources/templates/list")[1:] == (
                ["secret://low/deep/{id}"] if token == "admin" else []
            )


def test_conditions_hold_for_tools_with_overrides() -> None:
    inner, outer = desk(), App("outer")

    @inner.tool(tags={"admin"})
    def burn(note: str, force: bool) -> str:
        return f"{note} {force}"

    hidden = ToolOverride(name="shred", arguments={"force": ArgumentOverride(default=True, hide=True)})
    outer.mount(inner, tools={"burn": hidden, "look": ToolOverride(name="see")})
    outer.visible(lambda identity: identity.subject == "ada", "see")
    shown = {"eve": [], "user": ["see"], "admin": ["see", "purge", "shred"]}
    with running(Tokens(**USERS), servers=[outer], scopes={}, implies={}) as server:
        for token, names in shown.items():
            assert listed(server, token, None) == names
            for name in ("look", "burn", "see", "shred"):
                arguments = {"note": "x"} if name == "shred" else {}
                called = answer(server.ask("tools/call", token, name=name, arguments=arguments))
                assert ("result" in called) is (name in names), (token, name)


@each("revision", [STATELESS, LATEST])
def test_a_proxy_and_a_gateway_show_what_their_own_token_may_use_and_no_more(revision: str) -> None:
    with running(Tokens(**USERS), servers=[desk()], scopes={}, implies={}) as behind:
        for key, names in (("user", ["look"]), ("admin", ["look", "purge"])):
            headers = {"authorization": f"Bearer {key}"}
            far, outer = proxy(behind.url, headers=headers), App("outer")
            outer.mount(far, "far")
            outer.visible(lambda identity: identity.subject == "ada", "far_look")
            with running(Tokens(**USERS), servers=[outer], scopes={}, implies={}) as server:
                for token in ("eve", "admin"):
                    own = [f"far_{name}" for name in names if token == "admin" or name != "look"]
                    assert listed(server, token, session_of(server, token, revision)) == own
                    assert ("result" in answer(server.ask("tools/call", token, name="far_look"))) is (token == "admin")
            with running(Tokens(**USERS), servers=[Gateway(behind.url, headers=headers)], scopes={}) as server:
                for token in ("admin", "eve", "user"):
                    session = session_of(server, token, revision)
                    assert listed(server, token, session) == names
                    called = answer(server.ask("tools/call", token, session, name="purge"))
                    assert ("result" in called) is (key == "admin")


async def test_an_app_that_needs_tokens_is_not_put_behind_a_proxy_of_its_process() -> None:
    problem = "needs the tokens of its callers, and would not get them; mount or serve it itself"
    for app in (desk(), scoped()):
        outer = App("outer")
        outer.mount(proxy(app), "far")
        with pytest.raises(ValueError, match=problem):
            async with outer.served().lifespan():
                pass
        with pytest.raises(ValueError, match=problem):
            await Gateway(app).probe()


# --- servers without tokens, and mistakes ---------------------------------------------------------------------


@each("revision", ALL)
async def test_without_tokens_all_entries_are_visible(revision: str) -> None:
    async with connected(bindings(revision).Client(), desk()) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look", "purge"]
        assert not (await client.call_tool("purge", {})).is_error


def test_conditions_need_tokens_over_http() -> None:
    with pytest.raises(ValueError, match="tokens are not verified: pass auth="):
        HttpApp(desk())
    app = App("late")

    @app.tool
    def look() -> str:
        return ""

    app.served()
    with pytest.raises(ValueError, match="comes too late"):
        app.visible(lambda identity: False)
    part, outer = desk(), App("outer", dynamic={"tools", "prompts", "resources"})
    outer.served()
    with pytest.raises(ValueError, match="'purge' depends on its callers, but no entry did when the app was first"):
        outer.mount(part)


async def test_a_condition_that_selects_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = desk()
    app.rename_tools({"purge": "wipe"})
    app.visible(lambda identity: True, "wipe", "purge", "wype", "note://desk", tags={"admin", "admim"})
    async with app.served().lifespan():
        pass
    told = [record.getMessage() for record in caplog.records if "visible()" in record.getMessage()]
    assert [text.partition(": ")[2] for text in told] == [
        "visible() hides nothing: no entry has ['wype']",
        "visible() hides nothing: no entry has admim",
    ]


@pytest.mark.parametrize("value", [ZeroDivisionError(), "yes", anyio.sleep(0)])
def test_a_test_hides_unless_it_returns_true(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    def test(identity: Identity) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    app = desk()
    app.visible(test, "look")
    with running(Tokens(**USERS), servers=[app], scopes={}, implies={}) as server:
        assert listed(server, "admin", None) == ["purge"]
        assert answer(server.ask("tools/call", "admin", name="look"))["error"]["message"] == "Unknown tool: look"
    assert ("a test of visible() failed, so it hides: ZeroDivisionError" in caplog.text) is isinstance(value, Exception)


def test_a_condition_without_names_and_tags_is_about_all_entries_and_can_be_added_later() -> None:
    app = desk()
    with running(Tokens(**USERS), servers=[app], scopes={}, implies={}) as server:
        with listening(server, "user", None, **LISTS) as messages:
            app.visible(lambda identity: identity.subject == "eve")
            assert {next(messages)["method"] for _ in range(3)} == TOLD
        assert [listed(server, token, None) for token in USERS] == [[], [], ["look"]]
        assert answer(server.ask("resources/read", "admin", uri="note://desk"))["error"]["code"] == -32602


# --- caches ---------------------------------------------------------------------------------------------------


async def test_clients_that_share_a_cache_get_lists_of_their_own(server: Protected) -> None:
    cache = ResultCache()
    found: dict[str, list[str]] = {}
    for token in ("admin", "user", "admin", "eve"):
        headers = {"authorization": f"Bearer {token}"}
        async with v2026_07_28.Client.connect(server.url, headers=headers, cache=cache) as client:
            found[token] = [tool.name async for tool in client.iter_tools()]
    assert found == {"admin": ["look", "purge"], "user": ["look"], "eve": ["look"]}


@each("revision", ALL)
def test_pages_are_cut_after_hidden_entries_are_left_out(revision: str) -> None:
    app = App("desk", page_size=2)
    for index in range(9):
        app.add_tool(reader(f"note://{index}"), tags={"admin"} if index % 2 else ())
    app.visible(lambda identity: "admin" in identity.claims["roles"], tags={"admin"})
    with running(Tokens(**USERS), servers=[app], scopes={}, implies={}) as server:
        for token, sizes in (("user", [2, 2, 1]), ("admin", [2, 2, 2, 2, 1])):
            session, found = session_of(server, token, revision), []
            more: dict[str, Any] = {}
            while True:
                page = answer(server.ask("tools/list", token, session, **more))["result"]
                found.append(len(page["tools"]))
                if "nextCursor" not in page:
                    break
                more = {"cursor": page["nextCursor"]}
            assert found == sizes
        stolen = answer(server.ask("tools/list", "admin"))["result"]["nextCursor"]
        page = answer(server.ask("tools/list", "user", cursor=stolen))["result"]
        assert [tool["name"] for tool in page["tools"]] == ["read_2", "read_4"], (
            "a cursor opens no list of another user"
        )


class Verifying(Tokens):
    """Verifier that makes an identity for each request."""

    async def verify(self, token: str, resource: str) -> Identity | None:
        return replace(self.known[token])


def test_requests_with_one_token_do_not_compare_all_lists_again() -> None:
    app, tested = App("desk"), list[Identity]()
    app.add_tool(reader("look"), name="look")
    app.add_tool(reader("purge"), name="purge")

    def may_purge(identity: Identity) -> bool:
        tested.append(identity)
        return True

    app.visible(may_purge, "purge")
    with running(Verifying(user=ada()), servers=[app], scopes={}, implies={}) as server:
        session = server.session("user")
        for _ in range(2):
            tested.clear()
            assert "result" in answer(server.ask("tools/call", "user", session, name="look"))
    assert not tested


# --- tasks ----------------------------------------------------------------------------------------------------


@each("support", ["optional", "required"])
@each("revision", [STATELESS, LATEST])
def test_a_hidden_tool_runs_as_no_task(support: Any, revision: str) -> None:
    app = App("desk")

    @app.tool(task=support, tags={"admin"}, scopes=["files:write"])
    def purge() -> str:
        return "gone"

    @app.tool(task=support)
    def look() -> str:
        return "seen"

    app.visible(lambda identity: "admin" in identity.claims["roles"], tags={"admin"})
    extension: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = stateless("tools/call")["params"]["_meta"]
    declares = {"_meta": {**meta, "io.modelcontextprotocol/clientCapabilities": extension}}
    with running(Tokens(**USERS), servers=[app], scopes={}, implies={}) as server:
        session = session_of(server, "user", revision)
        for more in ({}, {"task": {}} if session else declares):
            found = [server.ask("tools/call", "user", session, name=name, **more) for name in ("purge", "missing")]
            assert found[0].status_code == found[1].status_code
            assert "error" in answer(found[0])
            assert found[0].text.replace("purge", "missing") == found[1].text
            assert ("error" in answer(server.ask("tools/call", "user", session, name="look", **more))) is (
                not more and support == "required"
            )
