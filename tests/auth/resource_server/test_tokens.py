"""Tokens that a protected server accepts, and its responses to tokens that it refuses; over real connections."""

from __future__ import annotations

import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from mcp_bindgen.auth import InvalidToken, challenges
from tests.harness.effort import each, rows
from tests.harness.issuer import At, Issuer, encoded, other_keys
from tests.harness.protected import Protected, initialize, running, said, stateless

KEYS = other_keys()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer().listening() as found:
        found.keys |= dict(KEYS.values())
        yield found


def challenge(response: Any) -> dict[str, str]:
    """Return the parameters of the only challenge in a response."""
    (found,) = challenges.parse([response.headers["www-authenticate"]])
    assert found.scheme == "bearer"
    return dict(found.parameters)


def refused(server: Protected, token: str, status: int = 401) -> str:
    """Check that calls and `initialize` refuse a token; return the error description."""
    response = server.call("whoami", token=token)
    assert response.status_code == status, response.text
    begun = server.post(initialize("2025-11-25"), token=token)
    assert begun.status_code == status
    assert "mcp-session-id" not in begun.headers
    told = challenge(response)
    assert told["error"] == "invalid_token"
    assert token not in response.text + response.headers["www-authenticate"]
    return told["error_description"]


# --- valid tokens ---------------------------------------------------------------------------------------------


@each("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *KEYS])
def test_every_asymmetric_algorithm_is_accepted(server: Protected, issuer: Issuer, algorithm: str) -> None:
    id_, key = KEYS.get(algorithm, ("k1", issuer.key))
    assert said(server.call("whoami", token=server.token(header={"alg": algorithm, "kid": id_}, key=key))) == "alice"


@each(
    "changes",
    [
        *({"header": {"typ": type_}} for type_ in ("application/at+jwt", "AT+JWT")),
        *({"scope": ..., "scp": scopes} for scopes in ("mcp:read other", ["mcp:read"])),
        *({"exp": At(-30)}, {"nbf": At(30), "iat": At(30)}, {"exp": At(100.5), "iat": At(0.5)}),
        *({"iat": ..., "jti": ...}, {"aud": "LIST"}, {"header": {"x5t": "abc", "x5c": ["abc"]}}),
    ],
)
def test_token_variants_of_different_issuers_are_accepted(server: Protected, changes: dict[str, Any]) -> None:
    if changes.get("aud") == "LIST":
        changes = {"aud": ["https://elsewhere.example.org", server.url]}
    assert said(server.call("whoami", token=server.token(**changes))) == "alice"


def test_the_scheme_is_read_in_any_case(server: Protected) -> None:
    token = server.token()
    for scheme in ("bearer", "BEARER", "Bearer "):
        assert said(server.call("whoami", headers={"authorization": f"{scheme} {token}"})) == "alice"


# --- no token -------------------------------------------------------------------------------------------------


@each("headers", [{}, {"authorization": "Basic YTpi"}, {"authorization": "Negotiate"}])
def test_a_request_without_a_token_gets_a_challenge(server: Protected, headers: dict[str, str]) -> None:
    responses = [
        server.call("whoami", headers=headers),
        server.post(initialize("2025-11-25"), headers=headers),
        server.client.get(server.url, headers={"accept": "text/event-stream", **headers}),
        server.client.delete(server.url, headers=headers),
        server.client.get(f"{server.origin}/sse", headers=headers),
        server.client.post(f"{server.origin}/messages?session_id=x", json={}, headers=headers),
    ]
    for response in responses:
        assert response.status_code == 401
        told = challenge(response)
        assert told["scope"] == "mcp:read mcp:write"
        assert "error" not in told
        assert told["resource_metadata"] == server.metadata_url


def test_the_challenge_points_to_the_resource_metadata(server: Protected, issuer: Issuer) -> None:
    metadata = server.client.get(challenge(server.call("whoami"))["resource_metadata"])
    assert metadata.headers["content-type"] == "application/json"
    told = {"resource": server.url, "authorization_servers": [issuer.url], "bearer_methods_supported": ["header"]}
    assert metadata.json() == {**told, "scopes_supported": ["mcp:read", "mcp:write"]}
    assert server.client.post(server.metadata_url, json={}).status_code == 405
    assert server.client.get(server.metadata_url.removesuffix("/mcp")).status_code == 404


@each("path", ["/", "/mcp/", "/mcpx", "/.well-known/oauth-protected-resource/mcp/x"])
def test_unknown_paths_give_404_without_a_challenge(server: Protected, path: str) -> None:
    response = server.client.post(f"{server.origin}{path}", json=initialize("2025-11-25"))
    assert response.status_code == 404
    assert "www-authenticate" not in response.headers


def test_a_token_is_required_before_the_body_is_read(server: Protected) -> None:
    assert (server.post(b"{").status_code, server.post(b"x" * 5_000_000).status_code) == (401, 401)
    assert server.post(b"", headers={"content-type": "text/plain"}).status_code == 401


def test_host_and_origin_are_checked_before_the_token(server: Protected) -> None:
    for token in (server.token(), None):
        assert server.call("whoami", token=token, headers={"host": "evil.example.org"}).status_code == 421
        assert server.call("whoami", token=token, headers={"origin": "https://evil.example.org"}).status_code == 403


@each(
    "forged",
    [
        {"x-forwarded-host": "evil.example.org", "x-forwarded-proto": "https", "x-forwarded-prefix": "/evil"},
        {"forwarded": "host=evil.example.org;proto=https", "x-original-url": "/evil", "x-rewrite-url": "/evil"},
        {"host": "localhost"},
    ],
)
def test_forged_address_headers_do_not_change_the_resource(
    server: Protected, issuer: Issuer, forged: dict[str, str]
) -> None:
    assert challenge(server.call("whoami", headers=forged)) == challenge(server.call("whoami"))
    assert server.client.get(server.metadata_url, headers=forged).json()["resource"] == server.url
    assert server.call("whoami", token=issuer.token("https://evil.example.org/mcp"), headers=forged).status_code == 401


# --- invalid tokens -------------------------------------------------------------------------------------------


AUDIENCES: list[Any] = [..., "", [], None, "https://elsewhere.example.org/mcp", 1, True, {"ORIGIN/mcp": 1}]
AUDIENCES += [["ORIGIN", "https://elsewhere.example.org/mcp"], ["ORIGIN/m", "cp"], [["ORIGIN/mcp"]], "ORIGIN/mcp evil"]
AUDIENCES += ["ORIGIN", "ORIGIN/", "ORIGIN/mcp/", "ORIGIN/mc", "ORIGIN/mcp/inner", "ORIGIN/MCP", "ORIGIN/mcp?"]


@each("audience", AUDIENCES)
def test_a_token_for_another_audience_is_refused(server: Protected, audience: Any) -> None:
    if audience is not ...:
        audience = json.loads(json.dumps(audience).replace("ORIGIN", server.origin))
    assert refused(server, server.token(aud=audience)) == "the token is not for this resource"


CLAIMS: dict[str, list[dict[str, Any]]] = {
    "the token has expired": [{"exp": At(-120)}, {"exp": 0}, {"exp": -1}],
    "the token does not say when it expires": [{"exp": ...}, {"exp": None}],
    "the exp of the token is not a time": [{"exp": "1e10"}, {"exp": True}, {"exp": [At(600)]}],
    "the token is not valid yet": [{"nbf": At(1200)}],
    "the nbf of the token is not a time": [{"nbf": "soon"}],
    "the token was issued in the future": [{"iat": At(1200), "exp": At(2400)}],
    "the token does not name its subject": [{"sub": ..., "client_id": ...}, {"sub": "", "client_id": 1}, {"sub": 42}],
    "the token is no access token": [{"nonce": "n"}, {"at_hash": "h"}, {"typ": "ID"}],
    "the token is unknown here": [{"iss": "https://elsewhere.example.org"}, {"iss": ...}, {"iss": "/"}, {"iss": []}],
}


@each(("changes", "reason"), rows(CLAIMS))
def test_a_token_with_invalid_claims_is_refused(server: Protected, issuer: Issuer, changes: Any, reason: str) -> None:
    nearly: dict[object, Any] = {"/": f"{issuer.url}/", "[]": [issuer.url]}
    changed = {name: nearly.get(str(value), value) for name, value in changes.items()}
    assert refused(server, server.token(**changed)) == reason


def test_a_token_with_another_type_is_refused(server: Protected) -> None:
    for type_ in (..., "JWT", "id_token+jwt", "dpop+jwt", "at+jwt ", "application/application/at+jwt", 1):
        assert "type" in refused(server, server.token(header={"typ": type_}))


def test_a_token_without_a_signature_is_refused(server: Protected, issuer: Issuer) -> None:
    for name in ("none", "None", "NONE"):
        text = encoded({"typ": "at+jwt", "alg": name}) + b"." + encoded(issuer.claims(server.url))
        refused(server, f"{text.decode()}.AAAA")
        assert server.call("whoami", token=f"{text.decode()}.").status_code == 401


def test_a_public_key_is_not_accepted_as_a_symmetric_key(server: Protected, issuer: Issuer) -> None:
    for public in (issuer.key.as_pem(private=False), json.dumps(issuer.key.as_dict(private=False)).encode()):
        for algorithm in ("HS256", "HS384", "HS512"):
            assert "algorithm" in refused(server, server.token(header={"alg": algorithm}, key=public))


@each("algorithm", ["ES256K", "", None, 1, ["RS256"], "rs256", "RS256 "])
def test_an_algorithm_that_is_not_on_the_list_is_refused(server: Protected, issuer: Issuer, algorithm: Any) -> None:
    header = {"typ": "at+jwt", "alg": algorithm, "kid": "k1"}
    refused(server, (encoded(header) + b"." + encoded(issuer.claims(server.url)) + b".AAAA").decode())


def test_an_algorithm_that_does_not_fit_the_key_is_refused(server: Protected) -> None:
    id_, key = KEYS["ES256"]
    refused(server, server.token(header={"alg": "ES256", "kid": "k1"}, key=key))
    refused(server, server.token(header={"alg": "RS256", "kid": id_}))
    refused(server, server.token(header={"alg": "PS256"}, key=RSAKey.generate_key(2048)))


def test_keys_in_a_token_header_are_not_trusted(server: Protected, issuer: Issuer) -> None:
    own = RSAKey.generate_key(2048)
    public = own.as_dict(private=False)
    headers: list[dict[str, Any]] = [{"jwk": public}, {"jwk": public, "kid": ...}, {}]
    headers += [{name: f"{issuer.url}/jwks"} for name in ("jku", "x5u")]
    headers += [{"crit": ["exp"], "exp": 1}, {"crit": ["b64"], "b64": False}, {"crit": []}]
    for header in [*headers, {"kid": "../../k1"}, {"kid": ["k1"]}, {"kid": {"k1": 1}}]:
        before = issuer.asked
        refused(server, server.token(header=header, key=own))
        assert issuer.asked == before
    for header in ({"jwk": issuer.key.as_dict(private=False)}, {"jku": f"{issuer.url}/jwks"}, {"crit": ["exp"]}):
        refused(server, server.token(header=header))


def test_a_token_that_was_changed_is_refused(server: Protected, issuer: Issuer) -> None:
    head, body, signature = server.token().split(".")
    changed = encoded(issuer.claims(server.url, sub="root")).decode()
    swapped = ("A" if signature[0] != "A" else "B") + signature[1:]
    for token in (f"{head}.{changed}.{signature}", f"{head}.{body}.{swapped}", f"{head}.{body}.{signature[:-8]}"):
        assert refused(server, token) == "the token has a wrong signature"


TOKENS = ["x", "a.b.c", "....", "e30.e30.e30", "a.b.c.d.e", "~~~", "W10.W10.AAAA", "-._~+/", "eyJ9.eyJ9.AAAA"]


def test_a_malformed_token_is_refused(server: Protected) -> None:
    for token in (*TOKENS, "a" * 8000):
        assert refused(server, token) == "the token is unknown here"


def test_huge_and_deeply_nested_tokens_are_refused(server: Protected) -> None:
    assert refused(server, server.token(more="x" * 20_000)) == "the token is too long"
    deep = urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")
    assert refused(server, f"{deep}.{deep[:900]}.AAAA") == "the token is unknown here"
    assert server.call("whoami", token="x" * 70_000).status_code in (400, 431)


# --- malformed ------------------------------------------------------------------------------------------------


def shown(server: Protected, *values: str) -> Any:
    """Return the response to these Authorization headers."""
    headers = [(b"content-type", b"application/json"), *((b"authorization", one.encode("latin-1")) for one in values)]
    return server.client.post(server.url, json=initialize("2025-11-25"), headers=headers)


def test_an_authorization_header_without_one_token_is_malformed(server: Protected) -> None:
    for value in ("Bearer", "Bearer a b", "Bearer a,b", 'Bearer token="a"', "Bearer a=b", "DPoP", "Bearer \xe9"):
        response = shown(server, value)
        assert (response.status_code, challenge(response)["error"]) == (400, "invalid_request")


def test_two_authorization_headers_are_malformed(server: Protected) -> None:
    token = f"Bearer {server.token()}"
    for pair in ((token, token), (token, "Bearer x"), ("Bearer x", token)):
        assert shown(server, *pair).status_code == 400
    assert shown(server, "Basic YTpi", token).status_code == 401


def test_a_token_in_the_query_is_refused(server: Protected) -> None:
    token, body = server.token(), stateless("tools/call", name="whoami")
    for query in (f"access_token={token}", f"a=b&access%5Ftoken={token}", "access_token="):
        response = server.client.post(f"{server.url}?{query}", json=body)
        assert response.status_code == 400
        assert token not in response.text
        allowed = {"authorization": f"Bearer {token}"}
        assert server.client.post(f"{server.url}?{query}", json=body, headers=allowed).status_code == 400


def test_a_token_in_the_body_is_ignored(server: Protected) -> None:
    token = server.token()
    form = server.client.post(server.url, data={"access_token": token})
    inside = server.post({**stateless("tools/call", name="whoami"), "access_token": token})
    assert form.status_code == inside.status_code == 401


# --- log ------------------------------------------------------------------------------------------------------


def test_refusals_are_logged(server: Protected, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    """The log never contains the token."""
    expired, good = server.token(sub="eve\nadmin", exp=At(-1000)), server.token()
    with caplog.at_level(logging.INFO, "mcp_bindgen.audit"):
        server.call("whoami")
        server.call("whoami", token=expired)
        server.call("delete", token=good)
        server.call("whoami", token=good)
    lines = [record.getMessage() for record in caplog.records if record.name == "mcp_bindgen.audit"]
    assert lines == [
        "refused: no token; POST /mcp; somebody",
        f"refused: the token has expired; POST /mcp; issuer='{issuer.url}' subject='eve\\nadmin' client='client'",
        "refused: insufficient scope; tools/call 'delete' needs mcp:write; "
        f"issuer='{issuer.url}' subject='alice' client='client'",
    ]
    assert expired not in caplog.text
    assert good not in caplog.text


def test_a_reason_from_a_verifier_is_escaped_in_the_challenge() -> None:
    class Strict:
        async def verify(self, token: str, resource: str) -> None:
            raise InvalidToken("abgelaufen, ung\u00fcltig\r\nx-more: 1")

    with running(Strict()) as server:
        response = server.call("whoami", token="x" * 20)
        assert response.status_code == 401
        assert challenge(response)["error_description"] == "abgelaufen, ung?ltig\\r\\nx-more: 1"
        assert "x-more" not in response.headers
