"""Access with tokens: scopes of operations, owners of sessions, and the identity in handlers; over real connections."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx2
import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.auth import Bearer, JwtVerifier, ResourceServer, StaticTokens, challenges
from mcp_bindgen.auth.dpop import ProofKey
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import ConnectionClosed, Identity, InvalidParams, ProtocolError, connect
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable
from tests.harness.commands import execute
from tests.harness.effort import each
from tests.harness.issuer import At, Issuer, Prover
from tests.harness.protected import (
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


def stepped_up(response: Any) -> str:
    """Return the scopes that a 403 response requests, in the header and in the body."""
    assert response.status_code == 403, response.text
    (found,) = challenges.parse([response.headers["www-authenticate"]])
    assert found.parameters["error"] == "insufficient_scope"
    assert found.parameters["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")
    assert response.json()["error"]["data"] == {"error": "insufficient_scope", "scope": found.parameters["scope"]}
    return found.parameters["scope"]


# --- scopes ---------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_scopes_are_required_in_stateful_and_stateless_revisions(server: Protected) -> None:
    reader = server.token()
    for revision in (None, BATCHES, LATEST):
        session = None if revision is None else server.session(reader, revision)
        assert stepped_up(server.call("delete", token=reader, session=session)) == "mcp:write"
        assert said(server.call("whoami", token=reader, session=session)) == "alice"
        assert said(server.call("delete", token=server.token(scope="mcp:write"), session=session)) == "deleted"


def test_scopes_are_compared_as_a_whole(server: Protected) -> None:
    enough: list[Any] = ["mcp:write", "mcp:read mcp:write", ["mcp:write"], "mcp:admin"]  # mcp:admin implies it
    others: list[Any] = ["mcp:read", "", "mcp:writer", "mcp:write-not", "MCP:WRITE", "mcp:\twrite", [["mcp:write"]]]
    others += ["mcp:write,mcp:read", {"mcp:write": 1}, True]
    for scopes, status in ((enough, 200), (others, 403)):
        for scope in scopes:
            assert server.call("delete", token=server.token(scope=scope)).status_code == status, scope


def test_scopes_are_required_for_every_call_in_a_batch(server: Protected) -> None:
    token = server.token()
    session = server.session(token, BATCHES)
    hidden = [called("whoami", 1), called("open", 2), called("delete", 3)]
    for batch in (hidden[::-1], [called("delete", 3)]):
        assert "mcp:write" in stepped_up(server.post(batch, token=token, headers=session))
    assert stepped_up(server.post(hidden, token=token, headers=session)) == "mcp:read mcp:write"
    told = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete"}}
    (answered,) = server.post([called("whoami", 5), told], token=token, headers=session).json()  # no handler takes it
    assert answered["id"] == 5
    assert server.post([called("whoami", 1), called("open", 2)], token=token, headers=session).status_code == 200


def test_headers_that_contradict_the_body_do_not_bypass_scopes(server: Protected) -> None:
    token, lies = server.token(), {"mcp-name": "whoami"}
    refused = server.call("delete", token=token, headers=lies)
    assert (stepped_up(refused), answer(refused)["id"]) == ("mcp:write", 1)
    lies["mcp-method"] = "tools/list"
    assert server.call("delete", token=token, headers=lies).status_code == 403
    assert server.call("whoami", token=token, headers=lies | {"mcp-name": "delete"}).status_code == 400


def test_duplicate_or_escaped_names_do_not_bypass_scopes(server: Protected) -> None:
    token = server.token()
    session = server.session(token)
    for names in ('"name":"whoami","name":"delete"', '"name":"delete","name":"whoami"', '"name":"dele\\u0074e"'):
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{names}}}}}'.encode()
        assert "deleted" not in server.post(body, token=token, headers=session).text
        wire = json.dumps(stateless("tools/call", name="X")).replace('"name": "X"', names).encode()
        response = server.post(wire, token=token, headers={"mcp-protocol-version": STATELESS, "mcp-name": "delete"})
        assert "deleted" not in response.text


def test_a_handler_can_require_more_scopes(server: Protected) -> None:
    token = server.token()
    assert stepped_up(server.call("admin", token=token)) == "mcp:admin"
    assert said(server.call("admin", token=server.token(scope="mcp:admin"))) == "done"
    told = server.call("admin", token=token, session=server.session(token))
    assert told.status_code == 200
    assert answer(told)["error"]["data"] == {"error": "insufficient_scope", "scope": "mcp:admin"}
    late = server.call("late", token=token, _meta={**stateless("x")["params"]["_meta"], "progressToken": 1})
    assert late.status_code == 200
    assert "notifications/progress" in late.text
    assert answer(late)["error"]["data"]["scope"] == "mcp:admin"


def test_an_invalid_scope_of_a_handler_is_left_out_of_the_challenge(server: Protected) -> None:
    refused = server.call("odd", token=server.token())
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    (found,) = challenges.parse([refused.headers["www-authenticate"]])
    assert (found.parameters["scope"], refused.json()["error"]["data"]["error"]) == ("mcp:admin", "insufficient_scope")


def test_scopes_of_all_requests_methods_and_names_add_up(issuer: Issuer) -> None:
    scopes = {"*": ["base"], "tools/call": ["call"], ("tools/call", "delete"): ["mcp:write"], "GET": ["never"]}
    with running(JwtVerifier(issuer.url), issuer=issuer, scopes=scopes, implies={}) as server:
        assert 'scope="base call never"' in server.call("open").headers["www-authenticate"]
        base = server.token(scope="base")
        assert stepped_up(server.call("delete", token=base)) == "base call mcp:write"
        assert stepped_up(server.call("open", token=base)) == "base call"
        assert server.ask("tools/list", token=base).status_code == 200
        nothing = server.token(scope="call mcp:write")
        assert stepped_up(server.call("delete", token=nothing)) == "base call mcp:write"
        assert stepped_up(server.post(initialize(LATEST), token=nothing)) == "base"
        assert server.client.delete(server.url, headers={"authorization": f"Bearer {nothing}"}).status_code == 403


# --- sessions -------------------------------------------------------------------------------------------------


@each("changes", [{"sub": "eve"}, {"client_id": "other"}, {"sub": "alice\x00"}])
def test_another_principal_cannot_use_a_session(server: Protected, changes: dict[str, Any]) -> None:
    mine, other = server.token(), server.token(**changes)
    session = server.session(mine)
    stream = {"accept": "text/event-stream", **session}
    for token, status in ((other, 404), *[(mine, 200)] * 3):
        assert server.call("whoami", token=token, session=session).status_code == status
    bearer = {"authorization": f"Bearer {other}"}
    assert server.client.get(server.url, headers=stream | bearer).status_code == 404
    own = {"accept": "text/event-stream", **server.session(other)}
    # the last two streams exist only in the other session
    for id_, headers in (("0-0", stream), ("0.1-1", stream), ("0.2-1", stream), ("0.3-1", own), ("0.4-1", own)):
        resumed = server.client.get(server.url, headers={**headers, **bearer, "last-event-id": id_})
        assert resumed.status_code == (404 if headers is stream else 400)
    assert server.client.delete(server.url, headers=session | bearer).status_code == 404
    assert server.post(called("whoami"), headers=session).status_code == 401  # a session id is not a token
    assert said(server.call("whoami", token=mine, session=session)) == "alice"


def test_special_characters_in_names_do_not_make_principals_equal(issuer: Issuer) -> None:
    one = Identity(issuer="a", subject='b","c', client="d")
    assert one.principal != Identity(issuer="a", subject="b", client='c","d').principal
    assert Identity(subject="a", client=None).principal != Identity(subject="a", client="null").principal


def test_the_same_subject_of_another_issuer_is_another_principal(issuer: Issuer) -> None:
    with Issuer().listening() as second, running(JwtVerifier(issuer.url), JwtVerifier(second.url)) as server:
        assert server.client.get(server.metadata_url).json()["authorization_servers"] == [issuer.url, second.url]
        session, theirs = server.session(issuer.token(server.url)), second.token(server.url)
        assert said(server.call("whoami", token=theirs)) == "alice"
        assert server.call("whoami", token=theirs, session=session).status_code == 404
        assert server.call("whoami", token=issuer.token(server.url, iss=second.url)).status_code == 401


def test_a_renewed_token_continues_the_session_with_its_own_scopes(server: Protected) -> None:
    session = server.session(server.token())
    for scope in ("mcp:read", "mcp:read mcp:write", "mcp:read"):
        seen = json.loads(said(server.call("open", token=server.token(scope=scope), session=session)))
        assert seen == ["alice", "client", sorted(scope.split())]  # scopes of this token
    assert server.call("open", token=server.token(exp=At(-100)), session=session).status_code == 401


def test_concurrent_calls_have_separate_identities(server: Protected) -> None:
    tokens = {name: server.token(scope=f"mcp:read {name}") for name in map(str, range(8))}
    session = server.session(server.token())

    def work(name: str) -> None:
        for number in range(10):
            call = called("open", int(name) * 100 + number + 1)
            assert name in json.loads(said(server.post(call, token=tokens[name], headers=session)))[2]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, tokens))


def test_a_request_state_is_valid_only_for_its_principal(server: Protected) -> None:
    mine, other = server.token(), server.token(sub="eve")
    reply = {"action": "accept", "content": {"name": "x"}}
    asked = answer(server.call("ask", token=mine, inputResponses={"first": reply}))["result"]
    assert (asked["resultType"], list(asked["inputRequests"])) == ("input_required", ["second"])
    replied = {"inputResponses": {"second": reply}, "requestState": asked["requestState"]}
    assert "requestState is not valid" in answer(server.call("ask", token=other, **replied))["error"]["message"]
    assert said(server.call("ask", token=server.token(scope="mcp:read mcp:write"), **replied)) == "alice"


LISTENING = {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
LISTEN = stateless("subscriptions/listen", notifications={"toolsListChanged": True})


def test_a_subscription_has_the_identity_of_its_client(server: Protected) -> None:
    token = server.token(sub="listener")
    headers = {**LISTENING, "authorization": f"Bearer {token}", "accept": BOTH}
    with server.client.stream("POST", server.url, json=LISTEN, headers=headers) as stream:
        lines = stream.iter_lines()
        assert any("acknowledged" in line for line in iter(lambda: next(lines), None))
        assert json.loads(said(server.call("announce", token=server.token(scope="mcp:write")))) == ["listener"]
        assert any("list_changed" in line for line in lines)


@pytest.mark.full
def test_streams_end_when_the_token_that_opened_them_expires(server: Protected) -> None:
    """Streams end even if they always have messages to send."""
    flooding = threading.Thread(target=flooded, args=(server, server.token(), 2.0))
    flooding.start()
    brief = server.token(exp=At(-58.5))  # the verifier allows a clock skew of a minute
    bearer = {"authorization": f"Bearer {brief}"}
    session = {"accept": "text/event-stream", **server.session(server.token())}
    with server.client.stream("GET", server.url, headers=session | bearer) as stream:
        assert answer(server.post(LISTEN, token=brief, headers=LISTENING))["result"]["resultType"] == "complete"
        assert stream.status_code == 200
        stream.read()
    flooding.join()
    assert server.call("whoami", token=brief).status_code == 401
    again = {"authorization": f"Bearer {server.token()}"}
    with server.client.stream("GET", server.url, headers=session | again) as stream:
        assert stream.status_code == 200


async def test_connecting_without_a_scope_of_all_requests_reports_the_scope(issuer: Issuer) -> None:
    """No client, of any revision, concludes that the server has another revision."""
    with running(JwtVerifier(issuer.url), scopes={"*": ["mcp:all"]}) as server:
        auth = Bearer(issuer.token(server.url))
        for opened in (v2026_07_28.Client.connect, v2025_11_25.Client.connect, connect):
            with pytest.raises((ProtocolError, ConnectionClosed), match="this needs mcp:all"):
                async with opened(server.url, auth=auth):
                    pass


def flooded(server: Protected, token: str, seconds: float) -> None:
    """Notify all clients continuously for some seconds."""
    other = Protected(server.url)
    other.client.timeout = seconds
    with other.client, pytest.raises(httpx2.ReadTimeout):
        other.call("flood", token=token)


class Tasked(v2025_11_25.Server):
    """Server that keeps tasks by principal, and whose prompts are an invalid result."""

    info = v2025_11_25.types.Implementation(name="tasks", version="1")

    def get_task(self, params: Any, ctx: v2025_11_25.Context) -> Any:
        assert ctx.identity is not None
        if (params.task_id, ctx.identity.principal) != ("task-1", Identity(subject="alice").principal):
            raise InvalidParams("tasks/get", [{"path": "params.taskId", "problem": "there is no such task"}])
        at = "2025-11-25T00:00:00Z"
        return {"taskId": params.task_id, "status": "working", "ttl": None, "createdAt": at, "lastUpdatedAt": at}

    def list_prompts(self, params: Any, ctx: Any) -> Any:
        return "none"

    def extra_capabilities(self) -> dict[str, Any]:
        return {"tasks": {}}


def test_a_task_is_found_only_by_its_owner_and_invalid_results_are_hidden() -> None:
    tokens = {"the-token-of-alice": "alice", "the-token-of-eve-x": "eve"}
    with running(StaticTokens(tokens), servers=[Tasked()]) as server:
        for token, member in zip(tokens, ("result", "error"), strict=True):
            session = server.session(token)
            assert member in answer(server.ask("tasks/get", token, session, taskId="task-1"))
            refused = answer(server.ask("prompts/list", token, session))
            assert refused["error"] == {"code": -32603, "message": "Internal error"}


# --- HTTP+SSE -------------------------------------------------------------------------------------------------


Post = Callable[[Any, str | None], Any]


@contextmanager
def old_stream(server: Protected, token: str) -> Iterator[tuple[Iterator[str], Post]]:
    """Open a stream of HTTP+SSE; yield its data, and a function that POSTs a message to it with a token."""
    with server.client.stream("GET", f"{server.origin}/sse", headers={"authorization": f"Bearer {token}"}) as stream:
        data = (line[6:] for line in stream.iter_lines() if line.startswith("data: "))
        place = server.origin + next(data)

        def post(body: Any, token: str | None) -> Any:
            headers = {"content-type": "application/json"}
            headers |= {} if token is None else {"authorization": f"Bearer {token}"}
            content = body if isinstance(body, bytes) else json.dumps(body)
            return server.client.post(place, content=content, headers=headers)

        yield data, post


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def test_the_sse_transport_checks_tokens_owners_and_scopes(server: Protected) -> None:
    mine, other = server.token(), server.token(sub="eve")
    with old_stream(server, mine) as (data, post):
        for token, status in ((None, 401), (other, 404), (mine, 202)):
            assert post(initialize(LATEST), token).status_code == status
        assert json.loads(next(data))["result"]["protocolVersion"] == LATEST
        assert (post(INITIALIZED, mine).status_code, stepped_up(post(called("delete"), mine))) == (202, "mcp:write")
        assert (post(called("delete"), other).status_code, post(called("whoami", 2), mine).status_code) == (404, 202)
        assert json.loads(next(data))["result"]["content"][0]["text"] == "alice"
        twice = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"delete","name":"open"}}'
        assert post(twice, server.token(scope="x")).status_code in (202, 403)


@pytest.mark.full
def test_an_sse_stream_ends_when_its_longest_lived_token_expires(server: Protected) -> None:
    """Only a message with a longer-lived token keeps the stream open: neither events nor a running handler do."""
    brief, longer = (server.token(exp=At(seconds), scope="mcp:write") for seconds in (-58, -56.5))
    with old_stream(server, brief) as (data, post):
        for message, token in ((initialize(LATEST), brief), (INITIALIZED, longer), (called("flood"), longer)):
            assert post(message, token).status_code == 202  # the handler of the last message never stops sending
        assert len(list(data)) > 10
        assert post(called("open"), server.token()).status_code == 404
    assert server.client.get(f"{server.origin}/sse", headers={"authorization": f"Bearer {longer}"}).status_code == 401


# --- static tokens --------------------------------------------------------------------------------------------

KEY = "a key that nobody can guess"


def test_static_tokens_and_api_keys_authenticate_users() -> None:
    alice, bob = KEY.replace(" ", "-"), "another-secret-of-bob"
    tokens = StaticTokens({alice: Identity(subject="alice", scopes=frozenset({"mcp:write"})), bob: "bob"})
    with running(tokens, api_key_header="X-API-Key") as server:
        for headers in ({"authorization": f"Bearer {alice}"}, {"x-api-key": alice}):
            assert said(server.call("whoami", headers=headers)) == "alice"
            assert said(server.call("delete", headers=headers)) == "deleted"
            seen = json.loads(said(server.call("headers", headers=headers | {"x-other": "kept"})))
            assert "x-other" in seen
            assert alice not in str(seen)  # tokens do not reach handlers
        assert server.call("whoami", headers={"x-api-key": bob}).status_code == 403
        assert json.loads(said(server.call("open", token=bob))) == ["bob", None, []]
        for wrong in ("another-secret-of-bo", "another-secret-of-bobb", "x"):
            refused = server.call("whoami", token=wrong)
            assert refused.status_code == 401
            assert "resource_metadata" not in refused.headers["www-authenticate"]  # there is no issuer to name
        assert server.call("whoami", token=bob, headers={"x-api-key": bob}).status_code == 400
        assert server.client.get(server.metadata_url).status_code == 404


def test_a_failing_verifier_refuses_requests_without_details(caplog: pytest.LogCaptureFixture) -> None:
    failing: Any = SimpleNamespace(verify=mock.AsyncMock(side_effect=KeyError("a database")))
    with running(failing) as server:
        response = server.call("whoami", token="the-token-of-alice")
    assert (response.status_code, response.json()["error"]["data"]) == (503, {"error": "unavailable"})
    assert "database" not in response.text
    assert "a token could not be verified" in caplog.text
    assert "the-token-of-alice" not in caplog.text


def test_an_error_of_a_verifier_that_shows_the_token_is_logged_without_it(caplog: pytest.LogCaptureFixture) -> None:
    async def verify(token: str, resource: str) -> Identity:
        return {"another": Identity(subject="alice")}[token]

    table: Any = SimpleNamespace(verify=verify)
    with running(table) as server:
        assert server.call("whoami", token="the-token-of-alice").status_code == 503
    assert "KeyError: '...'" in caplog.text
    assert "in verify" in caplog.text
    assert "the-token-of-alice" not in caplog.text


def test_a_store_of_proofs_that_is_away_or_full_is_reported_in_one_line(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    key = ProofKey.generate()
    away: Any = SimpleNamespace(add=mock.AsyncMock(side_effect=StoreUnavailable("too many proofs at once")))
    with running(JwtVerifier(issuer.url), issuer=issuer, dpop="optional", replay=away) as server:
        token = server.token(cnf={"jkt": key.thumbprint})
        sent = {"authorization": f"DPoP {token}", "dpop": key.prove("POST", server.url, token=token)}
        assert server.call("whoami", headers=sent).status_code == 503
    assert "too many proofs at once" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_static_token_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        StaticTokens({"secret": "alice"})


def test_secrets_are_absent_from_representations(issuer: Issuer) -> None:
    tokens = StaticTokens({KEY: "alice"})
    auth = ResourceServer("https://example.org/mcp", tokens, JwtVerifier(issuer.url))
    for one in (tokens, auth, vars(tokens), vars(auth)):
        assert KEY not in repr(one)
    assert "secret" not in repr(Identity(subject="a", claims={"email": "secret"}))


# --- invalid configurations -----------------------------------------------------------------------------------


RESOURCES = """
example.org/mcp http://example.org/mcp https://example.org/mcp#x https://example.org/mcp?x=1 HTTPS://example.org/mcp
https://EXAMPLE.org/mcp https://example.org:443/mcp https://example.org/ https://user@example.org/mcp
ftp://example.org/mcp https:///mcp
"""


@each("resource", ["", *RESOURCES.split()])
def test_an_invalid_or_non_canonical_resource_url_is_refused(issuer: Issuer, resource: str) -> None:
    with pytest.raises(ValueError, match="resource"):
        ResourceServer(resource, JwtVerifier(issuer.url))


@each("path", ["", "/mcp", "/a/b/mcp", "/mcp/"])
@each("origin", ["https://example.org", "http://localhost:8000", "http://[::1]:8000"])
def test_the_metadata_is_at_the_well_known_path_of_the_resource(issuer: Issuer, origin: str, path: str) -> None:
    auth = ResourceServer(f"{origin}{path}", JwtVerifier(issuer.url))
    assert auth.metadata_path == f"/.well-known/oauth-protected-resource{path}"


@each(
    ("path", "mount", "resource"),
    [("/mcp", "/", "/mcp"), ("/", "/inner/mcp", "/inner/mcp"), ("/mcp", "/inner", "/inner/mcp"), ("/mcp", "", "")],
)
async def test_an_endpoint_can_be_mounted(issuer: Issuer, path: str, mount: str, resource: str) -> None:
    auth = ResourceServer(f"https://example.org{resource}", JwtVerifier(issuer.url), dpop="optional")
    mcp = HttpApp(Tasked(), path=path, auth=auth, allowed_hosts=["example.org"])
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


@each("scopes", [{"x": ["a b"]}, {"x": ['a"']}, {"x": "ab"}, {"x": [""]}, {"x": ["offline_access"]}])
def test_an_invalid_scope_in_the_configuration_is_refused(issuer: Issuer, scopes: Any) -> None:
    for options in ({"scopes": scopes}, {"basic_scopes": scopes["x"]}):
        with pytest.raises(ValueError, match=r"scope|offline"):
            ResourceServer("https://example.org/mcp", JwtVerifier(issuer.url), **options)


def test_an_issuer_without_https_or_in_a_private_network_is_refused() -> None:
    for address in ("http://example.org", "https://10.0.0.1", "https://169.254.169.254", "file:///x", "x"):
        with pytest.raises(ValueError, match="issuer cannot be used"):
            JwtVerifier(address)
    JwtVerifier("https://10.0.0.1", private=True)


def test_a_server_with_scopes_requires_auth() -> None:
    class Scoped(v2025_11_25.Server):
        def required_scopes(self, method: str, name: str | None) -> list[str]:
            return ["x"] if name == "y" else []

    for make in (HttpApp, SseApp):
        with pytest.raises(ValueError, match="pass auth="):
            make(Scoped())


@pytest.mark.full
def test_auth_is_imported_only_when_it_is_used() -> None:
    code = (
        "import sys, mcp_bindgen.http.server.serve, mcp_bindgen.v2026_07_28.server\n"
        "ours = ('joserfc', 'cryptography', 'mcp_bindgen.auth')\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )
    assert execute(sys.executable, "-c", code).stdout.strip() == "[]"
