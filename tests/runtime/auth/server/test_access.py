"""What a token allows: scopes of each operation, whose session it is, and who a handler sees; over real connections."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.auth import Bearer, JwtVerifier, ResourceServer, StaticTokens, challenges
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import ConnectionClosed, Identity, InvalidParams, ProtocolError, Server, connect
from tests.support.issuer import At, Issuer, Prover
from tests.support.protected import (
    BATCHES,
    BOTH,
    LATEST,
    STATELESS,
    Protected,
    answer,
    called,
    initialize,
    running,
    said,
    stateless,
)


@pytest.fixture(scope="module")
def server(issuer: Issuer) -> Iterator[Protected]:
    with running(JwtVerifier(issuer.url)) as found:
        yield found


def stepped_up(response: Any) -> str:
    """The scopes that a 403 asks for, in the header and in the body."""
    assert response.status_code == 403, response.text
    (found,) = challenges.parse([response.headers["www-authenticate"]])
    assert found.parameters["error"] == "insufficient_scope"
    assert found.parameters["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")
    assert response.json()["error"]["data"] == {"error": "insufficient_scope", "scope": found.parameters["scope"]}
    return found.parameters["scope"]


# --- scopes ---------------------------------------------------------------------------------------------------


def test_an_operation_needs_its_scopes_in_every_era(server: Protected, issuer: Issuer) -> None:
    reader = issuer.token(server.url)
    assert stepped_up(server.call("delete", token=reader)) == "mcp:write"
    for revision in (BATCHES, LATEST):
        session = server.session(reader, revision)
        assert stepped_up(server.post(called("delete"), token=reader, headers=session)) == "mcp:write"
        assert said(server.post(called("whoami"), token=reader, headers=session)) == "alice"
        writer = issuer.token(server.url, scope="mcp:write")
        assert said(server.post(called("delete"), token=writer, headers=session)) == "deleted"


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ("mcp:write", 200),
        ("mcp:read mcp:write", 200),
        ("mcp:admin", 200),  # implies it
        ("mcp:read", 403),
        ("", 403),
        ("mcp:writer", 403),
        ("mcp:write-not", 403),
        ("MCP:WRITE", 403),
        ("mcp:\twrite", 403),
        ("mcp:write,mcp:read", 403),
        (["mcp:write"], 200),
        ([["mcp:write"]], 403),
        ({"mcp:write": 1}, 403),
        (True, 403),
    ],
    ids=str,
)
def test_scopes_are_compared_as_a_whole(server: Protected, issuer: Issuer, scope: Any, status: int) -> None:
    assert server.call("delete", token=issuer.token(server.url, scope=scope)).status_code == status


def test_a_batch_hides_no_call(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    session = server.session(token, BATCHES)
    hidden = [called("whoami", 1), called("open", 2), called("delete", 3)]
    for batch in (hidden, hidden[::-1], [called("delete", 3)]):
        response = server.post(batch, token=token, headers=session)
        assert "mcp:write" in stepped_up(response)
    assert stepped_up(server.post(hidden, token=token, headers=session)) == "mcp:read mcp:write"
    told = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete"}}
    assert server.post([called("whoami"), told], token=token, headers=session).status_code == 403
    assert server.post([called("whoami", 1), called("open", 2)], token=token, headers=session).status_code == 200


def test_headers_cannot_say_something_else_than_the_body(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    lies = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "whoami"}
    response = server.post(stateless("tools/call", name="delete"), token=token, headers=lies)
    assert stepped_up(response) == "mcp:write"
    lies["mcp-method"] = "tools/list"
    assert server.post(stateless("tools/call", name="delete"), token=token, headers=lies).status_code == 403
    honest = server.post(stateless("tools/call", name="whoami"), token=token, headers=lies | {"mcp-name": "delete"})
    assert honest.status_code == 400


def test_names_that_come_twice_are_the_ones_that_are_called(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    session = server.session(token)
    for names in ('"name":"whoami","name":"delete"', '"name":"delete","name":"whoami"', '"name":"dele\\u0074e"'):
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{names}}}}}'.encode()
        response = server.post(body, token=token, headers=session)
        if response.status_code == 200:
            assert "deleted" not in response.text
        wire = json.dumps(stateless("tools/call", name="X")).replace('"name": "X"', names).encode()
        response = server.post(wire, token=token, headers={"mcp-protocol-version": STATELESS, "mcp-name": "delete"})
        assert "deleted" not in response.text


def test_a_handler_can_ask_for_more(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    assert stepped_up(server.call("admin", token=token)) == "mcp:admin"
    assert said(server.call("admin", token=issuer.token(server.url, scope="mcp:admin"))) == "done"
    session = server.session(token)
    told = server.post(called("admin"), token=token, headers=session)
    assert told.status_code == 200
    assert answer(told)["error"]["data"] == {"error": "insufficient_scope", "scope": "mcp:admin"}
    late = server.call("late", token=token, _meta={**stateless("x")["params"]["_meta"], "progressToken": 1})
    assert late.status_code == 200
    assert "notifications/progress" in late.text
    assert answer(late)["error"]["data"]["scope"] == "mcp:admin"


def test_what_cannot_be_a_scope_is_refused_and_not_asked_for(server: Protected, issuer: Issuer) -> None:
    refused = server.call("odd", token=issuer.token(server.url))
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    (found,) = challenges.parse([refused.headers["www-authenticate"]])
    assert found.parameters["scope"] == "mcp:admin"
    assert refused.json()["error"]["data"]["error"] == "insufficient_scope"


def test_scopes_of_methods_names_and_everything_add_up(issuer: Issuer) -> None:
    scopes = {"*": ["base"], "tools/call": ["call"], ("tools/call", "delete"): ["mcp:write"], "GET": ["never"]}
    with running(JwtVerifier(issuer.url), scopes=scopes, implies={}) as server:
        assert 'scope="base call never"' in server.call("open").headers["www-authenticate"]
        base = issuer.token(server.url, scope="base")
        assert stepped_up(server.call("delete", token=base)) == "base call mcp:write"
        assert stepped_up(server.call("open", token=base)) == "base call"
        listed = server.post(
            stateless("tools/list"), token=base, headers={"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"}
        )
        assert listed.status_code == 200
        nothing = issuer.token(server.url, scope="call mcp:write")
        assert stepped_up(server.call("delete", token=nothing)) == "base call mcp:write"
        assert stepped_up(server.post(initialize(LATEST), token=nothing)) == "base"
        assert server.client.delete(server.url, headers={"authorization": f"Bearer {nothing}"}).status_code == 403


# --- sessions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"sub": "eve"}, {"client_id": "other"}, {"sub": "alice\x00"}], ids=str)
def test_a_session_is_somebody_elses_for_everybody_else(
    server: Protected, issuer: Issuer, changes: dict[str, Any]
) -> None:
    mine, other = issuer.token(server.url), issuer.token(server.url, **changes)
    session = server.session(mine)
    stream = {"accept": "text/event-stream", **session}
    for token, status in ((other, 404), *[(mine, 200)] * 3):
        assert server.post(called("whoami"), token=token, headers=session).status_code == status
    bearer = {"authorization": f"Bearer {other}"}
    assert server.client.get(server.url, headers=stream | bearer).status_code == 404
    for id_ in ("0-0", "0.1-1", "0.2-1"):
        resumed = server.client.get(server.url, headers={**stream, **bearer, "last-event-id": id_})
        assert resumed.status_code == 404
    own = {"accept": "text/event-stream", **server.session(other), **bearer}
    for id_ in ("0.3-1", "0.4-1"):  # of streams that only the other session has
        assert server.client.get(server.url, headers={**own, "last-event-id": id_}).status_code == 400
    assert server.client.delete(server.url, headers=session | bearer).status_code == 404
    assert server.post(called("whoami"), headers=session).status_code == 401  # a session is no token
    assert said(server.post(called("whoami"), token=mine, headers=session)) == "alice"


def test_principals_are_not_mixed_up_by_what_their_names_hold(issuer: Issuer) -> None:
    one = Identity(issuer="a", subject='b","c', client="d")
    other = Identity(issuer="a", subject="b", client='c","d')
    assert one.principal != other.principal
    assert Identity(subject="a", client=None).principal != Identity(subject="a", client="null").principal


def test_the_same_user_of_another_issuer_is_somebody_else(issuer: Issuer) -> None:
    with Issuer().listening() as second, running(JwtVerifier(issuer.url), JwtVerifier(second.url)) as server:
        metadata = server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp").json()
        assert metadata["authorization_servers"] == [issuer.url, second.url]
        session = server.session(issuer.token(server.url))
        theirs = second.token(server.url)
        assert said(server.call("whoami", token=theirs)) == "alice"
        assert server.post(called("whoami"), token=theirs, headers=session).status_code == 404
        crossed = issuer.token(server.url, iss=second.url)
        assert server.call("whoami", token=crossed).status_code == 401


def test_a_renewed_token_goes_on_with_the_session(server: Protected, issuer: Issuer) -> None:
    session = server.session(issuer.token(server.url))
    for scope in ("mcp:read", "mcp:read mcp:write", "mcp:read"):
        token = issuer.token(server.url, scope=scope)
        seen = json.loads(said(server.post(called("open"), token=token, headers=session)))
        assert seen == ["alice", "client", sorted(scope.split())]  # of this very token
    expired = issuer.token(server.url, exp=At(-100))
    assert server.post(called("open"), token=expired, headers=session).status_code == 401


def test_identities_of_calls_at_the_same_time_are_not_mixed_up(server: Protected, issuer: Issuer) -> None:
    tokens = {name: issuer.token(server.url, scope=f"mcp:read {name}") for name in map(str, range(8))}
    session = server.session(issuer.token(server.url))
    wrong: list[Any] = []

    def work(name: str, token: str) -> None:
        for number in range(10):
            response = server.post(called("open", int(name) * 100 + number + 1), token=token, headers=session)
            seen = json.loads(said(response))
            if name not in seen[2]:
                wrong.append(seen)

    threads = [threading.Thread(target=work, args=one) for one in tokens.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_state_is_good_for_who_got_it_alone(server: Protected, issuer: Issuer) -> None:
    mine, other = issuer.token(server.url), issuer.token(server.url, sub="eve")
    reply = {"action": "accept", "content": {"name": "x"}}
    asked = answer(server.call("ask", token=mine, inputResponses={"first": reply}))["result"]
    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"]) == ["second"]
    replied = {"inputResponses": {"second": reply}, "requestState": asked["requestState"]}
    stolen = server.call("ask", token=other, **replied)
    assert "requestState is not valid" in answer(stolen)["error"]["message"]
    renewed = issuer.token(server.url, scope="mcp:read mcp:write")
    assert said(server.call("ask", token=renewed, **replied)) == "alice"


def test_a_subscription_knows_who_listens(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url, sub="listener")
    headers = {
        "mcp-protocol-version": STATELESS,
        "mcp-method": "subscriptions/listen",
        "authorization": f"Bearer {token}",
    }
    headers |= {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    body = json.dumps(stateless("subscriptions/listen", notifications={"toolsListChanged": True}))
    with server.client.stream("POST", server.url, content=body, headers=headers) as stream:
        lines = stream.iter_lines()
        assert any("acknowledged" in line for line in iter(lambda: next(lines), None))
        seen = json.loads(said(server.call("announce", token=issuer.token(server.url, scope="mcp:write"))))
        assert seen == ["listener"]
        assert any("list_changed" in line for line in lines)


def test_streams_end_with_the_token_that_opened_them(server: Protected, issuer: Issuer) -> None:
    """Also those on which there is always something to say."""
    flooding = threading.Thread(target=flooded, args=(server, issuer.token(server.url), 2.0))
    flooding.start()
    brief = issuer.token(server.url, exp=At(-58.5))  # clocks differ by a minute at most
    bearer = {"authorization": f"Bearer {brief}"}
    listening = {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
    asked = stateless("subscriptions/listen", notifications={"toolsListChanged": True})
    session = {"accept": "text/event-stream", **server.session(issuer.token(server.url))}
    began = time.monotonic()
    with server.client.stream("GET", server.url, headers=session | bearer) as stream:
        assert answer(server.post(asked, token=brief, headers=listening))["result"]["resultType"] == "complete"
        assert stream.status_code == 200
        stream.read()
    assert time.monotonic() - began > 0.5
    flooding.join()
    assert server.call("whoami", token=brief).status_code == 401
    again = {"authorization": f"Bearer {issuer.token(server.url)}"}
    with server.client.stream("GET", server.url, headers=session | again) as stream:
        assert stream.status_code == 200


async def test_a_client_whose_token_lacks_the_scope_of_everything_is_told_so(issuer: Issuer) -> None:
    """Its server is not taken for one of another revision, whatever the client speaks."""
    with running(JwtVerifier(issuer.url), scopes={"*": ["mcp:all"]}) as server:
        auth = Bearer(issuer.token(server.url))
        for client in (v2026_07_28.Client, v2025_11_25.Client):
            with pytest.raises((ProtocolError, ConnectionClosed), match="this needs mcp:all"):
                async with client.connect(server.url, auth=auth):
                    pass
        with pytest.raises((ProtocolError, ConnectionClosed), match="this needs mcp:all"):
            async with connect(server.url, auth=auth):
                pass


def flooded(server: Protected, token: str, seconds: float) -> None:
    """Have everybody be told something all the time, for a while."""
    other = Protected(server.url)
    other.client.timeout = seconds
    with other.client, pytest.raises(httpx2.ReadTimeout):
        other.call("flood", token=token)


class Tasked(v2025_11_25.Server):
    """Keeps tasks as it should: under their principal."""

    info = v2025_11_25.types.Implementation(name="tasks", version="1")

    def __init__(self) -> None:
        self.tasks = {("task-1", Identity(subject="alice").principal)}

    @classmethod
    def alone(cls) -> list[Server]:
        return [cls()]

    def get_task(self, params: Any, ctx: v2025_11_25.Context) -> v2025_11_25.types.GetTaskResult:
        assert ctx.identity is not None
        if (params.task_id, ctx.identity.principal) not in self.tasks:
            raise InvalidParams("tasks/get", [{"path": "params.taskId", "problem": "there is no such task"}])
        at = "2025-11-25T00:00:00Z"
        return v2025_11_25.types.GetTaskResult(
            task_id=params.task_id, status="working", ttl=None, created_at=at, last_updated_at=at
        )

    def extra_capabilities(self) -> dict[str, Any]:
        return {"tasks": {}}


def test_a_task_is_found_by_its_owner_alone() -> None:
    tokens = StaticTokens({"the-token-of-alice": "alice", "the-token-of-eve-x": "eve"})
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "task-1"}}
    with running(tokens, servers=[Tasked()]) as server:
        for token, member in (("the-token-of-alice", "result"), ("the-token-of-eve-x", "error")):
            assert member in answer(server.post(asked, token=token, headers=server.session(token)))


class Mistaken(v2025_11_25.Server):
    """Returns what is no result."""

    info = v2025_11_25.types.Implementation(name="mistaken", version="1")

    @classmethod
    def alone(cls) -> list[Server]:
        return [cls()]

    def list_prompts(self, params: Any, ctx: Any) -> Any:
        return "none"


def test_callers_with_a_token_are_not_told_what_a_handler_returned() -> None:
    tokens = StaticTokens({"the-token-of-alice": "alice"})
    asked = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}
    with running(tokens, servers=[Mistaken()]) as server:
        token = "the-token-of-alice"
        refused = answer(server.post(asked, token=token, headers=server.session(token)))
    assert refused["error"] == {"code": -32603, "message": "Internal error"}


# --- HTTP+SSE -------------------------------------------------------------------------------------------------


def test_the_old_transport_is_guarded_too(server: Protected, issuer: Issuer) -> None:
    mine, other = issuer.token(server.url), issuer.token(server.url, sub="eve")
    bearer = {"authorization": f"Bearer {mine}"}
    with server.client.stream("GET", f"{server.origin}/sse", headers=bearer) as stream:
        lines = stream.iter_lines()
        place = server.origin + next(line[6:] for line in lines if line.startswith("data: "))

        def post(body: Any, token: str | None) -> Any:
            headers = {"content-type": "application/json"} | (
                {} if token is None else {"authorization": f"Bearer {token}"}
            )
            return server.client.post(place, content=json.dumps(body), headers=headers)

        def reply() -> Any:
            return json.loads(next(line[6:] for line in lines if line.startswith("data: ")))

        assert post(initialize(LATEST), None).status_code == 401
        assert post(initialize(LATEST), other).status_code == 404
        assert post(initialize(LATEST), mine).status_code == 202
        assert reply()["result"]["protocolVersion"] == LATEST
        assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mine).status_code == 202
        assert stepped_up(post(called("delete"), mine)) == "mcp:write"
        assert post(called("delete"), other).status_code == 404
        assert post(called("whoami", 2), mine).status_code == 202
        assert reply()["result"]["content"][0]["text"] == "alice"
        twice = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"delete","name":"open"}}'
        headers = {"content-type": "application/json", "authorization": f"Bearer {issuer.token(server.url, scope='x')}"}
        assert server.client.post(place, content=twice, headers=headers).status_code in (202, 403)


@pytest.mark.full
def test_the_old_stream_ends_with_the_last_token_that_came_for_it(server: Protected, issuer: Issuer) -> None:
    """A message with another token keeps it open, and nothing else does: neither events nor a handler that runs."""
    brief, longer = (issuer.token(server.url, exp=At(seconds), scope="mcp:write") for seconds in (-58, -56.5))
    began = time.monotonic()
    with server.client.stream("GET", f"{server.origin}/sse", headers={"authorization": f"Bearer {brief}"}) as stream:
        lines = stream.iter_lines()
        place = server.origin + next(line[6:] for line in lines if line.startswith("data: "))

        def post(body: Any, token: str) -> int:
            headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
            with httpx2.Client(trust_env=False) as other:
                return other.post(place, content=json.dumps(body), headers=headers).status_code

        assert post(initialize(LATEST), brief) == 202
        assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}, longer) == 202
        assert post(called("flood"), longer) == 202  # it never stops to send
        events = sum(line.startswith("data: ") for line in lines)
    assert time.monotonic() - began > 3
    assert events > 10
    assert post(called("open"), issuer.token(server.url)) == 404
    with server.client.stream("GET", f"{server.origin}/sse", headers={"authorization": f"Bearer {brief}"}) as stream:
        assert stream.status_code == 401


# --- keys of one's own ----------------------------------------------------------------------------------------

KEY = "a key that nobody can guess"


def test_static_tokens_and_keys_are_the_simplest_case() -> None:
    alice = Identity(subject="alice", scopes=frozenset({"mcp:write"}))
    tokens = StaticTokens({KEY.replace(" ", "-"): alice, "another-secret-of-bob": "bob"})
    with running(tokens, api_key_header="X-API-Key") as server:
        for headers in ({"authorization": f"Bearer {KEY.replace(' ', '-')}"}, {"x-api-key": KEY.replace(" ", "-")}):
            assert said(server.call("whoami", headers=headers)) == "alice"
            assert said(server.call("delete", headers=headers)) == "deleted"
        assert server.call("whoami", headers={"x-api-key": "another-secret-of-bob"}).status_code == 403
        assert json.loads(said(server.call("open", token="another-secret-of-bob"))) == ["bob", None, []]
        for wrong in ("another-secret-of-bo", "another-secret-of-bobb", "x"):
            refused = server.call("whoami", token=wrong)
            assert refused.status_code == 401
            assert "resource_metadata" not in refused.headers["www-authenticate"]  # there is no issuer to go to
        both = {"x-api-key": "another-secret-of-bob", "authorization": "Bearer another-secret-of-bob"}
        assert server.call("whoami", headers=both).status_code == 400
        assert server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp").status_code == 404


class Failing:
    """A verifier with a mistake in it."""

    async def verify(self, token: str, resource: str) -> Identity | None:
        raise KeyError("a database")


def test_a_verifier_that_fails_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    with running(Failing()) as server:
        response = server.call("whoami", token="the-token-of-alice")
    assert response.status_code == 503
    assert response.json()["error"]["data"] == {"error": "unavailable"}
    assert "database" not in response.text
    assert "a token could not be verified" in caplog.text
    assert "the-token-of-alice" not in caplog.text


def test_a_token_that_can_be_guessed_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        StaticTokens({"secret": "alice"})


def test_secrets_show_nowhere(issuer: Issuer) -> None:
    tokens = StaticTokens({KEY: "alice"})
    auth = ResourceServer("https://example.org/mcp", tokens, JwtVerifier(issuer.url))
    for one in (tokens, auth, vars(tokens), vars(auth)):
        assert KEY not in repr(one)
    assert "secret" not in repr(Identity(subject="a", claims={"email": "secret"}))


# --- what cannot be right -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resource",
    [
        *("example.org/mcp", "http://example.org/mcp", "https://example.org/mcp#x", "https://example.org/mcp?x=1"),
        *("HTTPS://example.org/mcp", "https://EXAMPLE.org/mcp", "https://example.org:443/mcp", "https://example.org/"),
        *("https://user@example.org/mcp", "ftp://example.org/mcp", "", "https:///mcp"),
    ],
)
def test_a_resource_is_written_as_clients_write_it(issuer: Issuer, resource: str) -> None:
    with pytest.raises(ValueError, match="resource"):
        ResourceServer(resource, JwtVerifier(issuer.url))


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        ("https://example.org", ""),
        ("https://example.org/mcp", "/mcp"),
        ("https://example.org/a/b/mcp", "/a/b/mcp"),
        ("https://example.org/mcp/", "/mcp/"),
        ("http://localhost:8000/mcp", "/mcp"),
        ("http://[::1]:8000/mcp", "/mcp"),
    ],
)
def test_the_metadata_is_at_the_well_known_path_of_the_resource(issuer: Issuer, resource: str, place: str) -> None:
    auth = ResourceServer(resource, JwtVerifier(issuer.url))
    assert auth.metadata_path == f"/.well-known/oauth-protected-resource{place}"


@pytest.mark.parametrize(
    ("path", "mount", "resource"),
    [("/mcp", "/", "/mcp"), ("/", "/inner/mcp", "/inner/mcp"), ("/mcp", "/inner", "/inner/mcp"), ("/mcp", "", "")],
)
async def test_an_endpoint_can_be_mounted(issuer: Issuer, path: str, mount: str, resource: str) -> None:
    auth = ResourceServer(f"https://example.org{resource}", JwtVerifier(issuer.url), dpop="optional")
    mcp = HttpApp(*Tasked.alone(), path=path, auth=auth, allowed_hosts=["example.org"])
    app: Any = Starlette(routes=[*auth.routes(), Mount(mount, mcp)], lifespan=mcp.lifespan) if mount else mcp
    place = f"/.well-known/oauth-protected-resource{resource}"
    served = mount.rstrip("/") + (path if path != "/" else "/") if mount else path
    prover = Prover()
    async with mcp.lifespan(), AsyncClient(transport=ASGITransport(app), base_url="https://example.org") as client:
        refused = await client.post(served, json=initialize(LATEST))
        assert refused.status_code == 401
        told = challenges.parse(refused.headers.get_list("www-authenticate"))[0].parameters
        assert told["resource_metadata"] == f"https://example.org{place}"
        assert (await client.get(place)).json()["resource"] == f"https://example.org{resource}"
        token = issuer.token(auth.resource, cnf={"jkt": prover.thumbprint})
        headers = {"authorization": f"DPoP {token}", "accept": BOTH}
        for url in {auth.resource, f"https://example.org{served}"}:
            headers["dpop"] = prover.proof(url, token)
            begun = await client.post(served, json=initialize(LATEST), headers=headers)
            assert begun.status_code == 200, begun.text
        headers["dpop"] = prover.proof("https://example.org/elsewhere", token)
        assert (await client.post(served, json=initialize(LATEST), headers=headers)).status_code == 401


@pytest.mark.parametrize("scopes", [{"x": ["a b"]}, {"x": ['a"']}, {"x": "ab"}, {"x": [""]}, {"x": ["offline_access"]}])
def test_what_is_no_scope_of_a_resource_is_refused(issuer: Issuer, scopes: Any) -> None:
    with pytest.raises(ValueError, match=r"scope|offline"):
        ResourceServer("https://example.org/mcp", JwtVerifier(issuer.url), scopes=scopes)
    with pytest.raises(ValueError, match=r"scope|offline"):
        ResourceServer("https://example.org/mcp", JwtVerifier(issuer.url), basic_scopes=scopes["x"])


@pytest.mark.parametrize(
    "address", ["http://example.org", "https://10.0.0.1", "https://169.254.169.254", "file:///x", "x"]
)
def test_an_issuer_has_to_be_one_that_can_be_trusted(address: str) -> None:
    with pytest.raises(ValueError, match="issuer cannot be used"):
        JwtVerifier(address)


def test_an_issuer_inside_of_a_network_has_to_be_meant() -> None:
    JwtVerifier("https://10.0.0.1", private=True)


def test_scopes_of_a_server_want_somebody_who_verifies_tokens() -> None:
    class Scoped(v2025_11_25.Server):
        def required_scopes(self, method: str, name: str | None) -> list[str]:
            return ["x"] if name == "y" else []

    servers: list[Server] = [Scoped()]
    for make in (HttpApp, SseApp):
        with pytest.raises(ValueError, match="pass auth="):
            make(*servers)


def test_nothing_of_this_is_loaded_where_it_is_not_used() -> None:
    code = (
        "import sys, mcp_bindgen.http.server.serve, mcp_bindgen.v2026_07_28.server\n"
        "ours = ('joserfc', 'cryptography', 'mcp_bindgen.auth')\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
