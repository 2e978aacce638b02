"""Which tokens a protected server takes, and what it tells those whose token it does not: over real connections."""

from __future__ import annotations

import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from mcp_bindgen.auth import InvalidToken, JwtVerifier, challenges
from tests.support.issuer import At, Issuer, encoded, other_keys
from tests.support.protected import Protected, answer, called, initialize, running, said, stateless

KEYS = other_keys()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer().listening() as found:
        found.keys |= dict(KEYS.values())
        yield found


@pytest.fixture(scope="module")
def server(issuer: Issuer) -> Iterator[Protected]:
    with running(JwtVerifier(issuer.url)) as found:
        yield found


def challenge(response: Any) -> dict[str, str]:
    """The parameters of the only challenge of a response."""
    (found,) = challenges.parse([response.headers["www-authenticate"]])
    assert found.scheme == "bearer"
    return dict(found.parameters)


def refused(server: Protected, token: str, status: int = 401) -> str:
    """A token is refused in all ways to the server; returns what its sender is told."""
    response = server.call("whoami", token=token)
    assert response.status_code == status, response.text
    begun = server.post(initialize("2025-11-25"), token=token)
    assert begun.status_code == status
    assert "mcp-session-id" not in begun.headers
    told = challenge(response)
    assert told["error"] == "invalid_token"
    assert token not in response.text + response.headers["www-authenticate"]
    return told["error_description"]


# --- good ones ------------------------------------------------------------------------------------------------


def test_a_good_token_is_taken_in_every_era(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    assert said(server.call("whoami", token=token)) == "alice"
    for revision in ("2025-03-26", "2025-11-25"):
        session = server.session(token, revision)
        assert said(server.post(called("whoami"), token=token, headers=session)) == "alice"


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *KEYS])
def test_every_algorithm_with_two_keys_is_taken(server: Protected, issuer: Issuer, algorithm: str) -> None:
    id_, key = KEYS.get(algorithm, ("k1", issuer.key))
    token = issuer.token(server.url, header={"alg": algorithm, "kid": id_}, key=key)
    assert said(server.call("whoami", token=token)) == "alice"


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({}, {"typ": "application/at+jwt"}),
        ({}, {"typ": "AT+JWT"}),
        ({"aud": "LIST"}, {}),
        ({"scope": ..., "scp": "mcp:read other"}, {}),
        ({"scope": ..., "scp": ["mcp:read"]}, {}),
        ({"exp": At(-30)}, {}),
        ({"nbf": At(30), "iat": At(30)}, {}),
        ({"exp": At(100.5), "iat": At(0.5)}, {}),
        ({"iat": ..., "jti": ...}, {}),
        ({}, {"x5t": "abc", "x5c": ["abc"]}),
    ],
    ids=str,
)
def test_what_issuers_do_differently_is_taken(
    server: Protected, issuer: Issuer, changes: dict[str, Any], header: dict[str, Any]
) -> None:
    if changes.get("aud") == "LIST":
        changes = {"aud": ["https://elsewhere.example.org", server.url]}
    assert said(server.call("whoami", token=issuer.token(server.url, header=header, **changes))) == "alice"


def test_the_scheme_is_read_in_any_case(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    for scheme in ("bearer", "BEARER", "Bearer "):
        assert said(server.call("whoami", headers={"authorization": f"{scheme} {token}"})) == "alice"


# --- none -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic YTpi"}, {"authorization": "Negotiate"}], ids=str)
def test_who_has_no_token_is_told_how_to_get_one(server: Protected, headers: dict[str, str]) -> None:
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
        assert told["resource_metadata"] == f"{server.origin}/.well-known/oauth-protected-resource/mcp"


def test_the_metadata_is_where_the_challenge_says(server: Protected, issuer: Issuer) -> None:
    metadata = server.client.get(challenge(server.call("whoami"))["resource_metadata"])
    assert metadata.headers["content-type"] == "application/json"
    assert metadata.json() == {
        "resource": server.url,
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp:read", "mcp:write"],
    }
    place = f"{server.origin}/.well-known/oauth-protected-resource/mcp"
    assert server.client.post(place, json={}).status_code == 405
    assert server.client.get(place.removesuffix("/mcp")).status_code == 404


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcpx", "/.well-known/oauth-protected-resource/mcp/x"])
def test_other_paths_are_not_there_and_ask_for_no_token(server: Protected, path: str) -> None:
    response = server.client.post(f"{server.origin}{path}", json=initialize("2025-11-25"))
    assert response.status_code == 404
    assert "www-authenticate" not in response.headers


def test_a_token_is_asked_for_before_the_body_is_read(server: Protected) -> None:
    assert server.post(b"{").status_code == 401
    assert server.post(b"x" * 5_000_000).status_code == 401
    assert server.post(b"", headers={"content-type": "text/plain"}).status_code == 401


def test_host_and_origin_are_checked_before_the_token(server: Protected, issuer: Issuer) -> None:
    for token in (issuer.token(server.url), None):
        assert server.call("whoami", token=token, headers={"host": "evil.example.org"}).status_code == 421
        assert server.call("whoami", token=token, headers={"origin": "https://evil.example.org"}).status_code == 403


@pytest.mark.parametrize(
    "forged",
    [
        {"x-forwarded-host": "evil.example.org", "x-forwarded-proto": "https", "x-forwarded-prefix": "/evil"},
        {"forwarded": "host=evil.example.org;proto=https", "x-original-url": "/evil", "x-rewrite-url": "/evil"},
        {"host": "localhost"},
    ],
    ids=str,
)
def test_what_a_request_says_of_our_address_changes_nothing(
    server: Protected, issuer: Issuer, forged: dict[str, str]
) -> None:
    response = server.call("whoami", headers=forged)
    assert challenge(response) == challenge(server.call("whoami"))
    metadata = server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp", headers=forged)
    assert metadata.json()["resource"] == server.url
    wrong = issuer.token("https://evil.example.org/mcp")
    assert server.call("whoami", token=wrong, headers=forged).status_code == 401


# --- bad ones -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "audience",
    [
        ...,
        "",
        [],
        None,
        "https://elsewhere.example.org/mcp",
        "ORIGIN",
        "ORIGIN/",
        "ORIGIN/mcp/",
        "ORIGIN/mc",
        "ORIGIN/mcp/inner",
        "ORIGIN/MCP",
        "ORIGIN/mcp?",
        "ORIGIN/mcp evil",
        ["ORIGIN", "https://elsewhere.example.org/mcp"],
        ["ORIGIN/m", "cp"],
        [["ORIGIN/mcp"]],
        {"ORIGIN/mcp": 1},
        1,
        True,
    ],
    ids=str,
)
def test_a_token_for_somebody_else_is_refused(server: Protected, issuer: Issuer, audience: Any) -> None:
    if audience is not ...:
        audience = json.loads(json.dumps(audience).replace("ORIGIN", server.origin))
    assert refused(server, issuer.token(server.url, aud=audience)) == "the token is not for this resource"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": At(-120)}, "the token has expired"),
        ({"exp": 0}, "the token has expired"),
        ({"exp": -1}, "the token has expired"),
        ({"exp": ...}, "the token does not say when it expires"),
        ({"exp": None}, "the token does not say when it expires"),
        ({"exp": "1e10"}, "the exp of the token is not a time"),
        ({"exp": True}, "the exp of the token is not a time"),
        ({"exp": [At(600)]}, "the exp of the token is not a time"),
        ({"nbf": At(1200)}, "the token is not valid yet"),
        ({"nbf": "soon"}, "the nbf of the token is not a time"),
        ({"iat": At(1200), "exp": At(2400)}, "the token was issued in the future"),
        ({"sub": ..., "client_id": ...}, "the token does not name its subject"),
        ({"sub": "", "client_id": 1}, "the token does not name its subject"),
        ({"nonce": "n"}, "the token is no access token"),
        ({"at_hash": "h"}, "the token is no access token"),
        ({"typ": "ID"}, "the token is no access token"),
        ({"iss": "https://elsewhere.example.org"}, "the token is unknown here"),
        ({"iss": "ISSUER/"}, "the token is unknown here"),
        ({"iss": ["ISSUER"]}, "the token is unknown here"),
        ({"iss": ...}, "the token is unknown here"),
    ],
    ids=str,
)
def test_claims_that_are_not_in_order_are_refused(
    server: Protected, issuer: Issuer, changes: dict[str, Any], reason: str
) -> None:
    if changes.get("iss") not in (None, ...):
        changes = {"iss": json.loads(json.dumps(changes["iss"]).replace("ISSUER", issuer.url))}
    assert refused(server, issuer.token(server.url, **changes)) == reason


@pytest.mark.parametrize(
    "type_", [..., "JWT", "id_token+jwt", "dpop+jwt", "at+jwt ", "application/application/at+jwt", 1]
)
def test_only_access_tokens_are_taken_by_their_type(server: Protected, issuer: Issuer, type_: Any) -> None:
    assert "type" in refused(server, issuer.token(server.url, header={"typ": type_}))


def test_a_token_without_a_signature_is_refused(server: Protected, issuer: Issuer) -> None:
    for name in ("none", "None", "NONE"):
        text = encoded({"typ": "at+jwt", "alg": name}) + b"." + encoded(issuer.claims(server.url))
        refused(server, f"{text.decode()}.AAAA")
        response = server.call("whoami", token=f"{text.decode()}.")
        assert response.status_code == 401


def test_a_public_key_is_no_secret(server: Protected, issuer: Issuer) -> None:
    for public in (issuer.key.as_pem(private=False), json.dumps(issuer.key.as_dict(private=False)).encode()):
        for algorithm in ("HS256", "HS384", "HS512"):
            token = issuer.token(server.url, header={"alg": algorithm}, key=public)
            assert "algorithm" in refused(server, token)


@pytest.mark.parametrize("algorithm", ["ES256K", "", None, 1, ["RS256"], "rs256", "RS256 "])
def test_an_algorithm_that_is_not_on_the_list_is_refused(server: Protected, issuer: Issuer, algorithm: Any) -> None:
    header = {"typ": "at+jwt", "alg": algorithm, "kid": "k1"}
    refused(server, (encoded(header) + b"." + encoded(issuer.claims(server.url)) + b".AAAA").decode())


def test_an_algorithm_that_does_not_fit_the_key_is_refused(server: Protected, issuer: Issuer) -> None:
    id_, key = KEYS["ES256"]
    refused(server, issuer.token(server.url, header={"alg": "ES256", "kid": "k1"}, key=key))
    refused(server, issuer.token(server.url, header={"alg": "RS256", "kid": id_}))
    refused(server, issuer.token(server.url, header={"alg": "PS256"}, key=RSAKey.generate_key(2048)))


def test_keys_that_a_token_brings_along_are_not_trusted(server: Protected, issuer: Issuer) -> None:
    own = RSAKey.generate_key(2048)
    public = own.as_dict(private=False)
    headers: list[dict[str, Any]] = [
        {"jwk": public},
        {"jwk": public, "kid": ...},
        {"jku": f"{issuer.url}/jwks"},
        {"x5u": f"{issuer.url}/jwks"},
        {"crit": ["exp"], "exp": 1},
        {"crit": ["b64"], "b64": False},
        {"crit": []},
        {"kid": "../../k1"},
        {"kid": ["k1"]},
        {"kid": {"k1": 1}},
        {},
    ]
    for header in headers:
        before = issuer.asked
        refused(server, issuer.token(server.url, header=header, key=own))
        assert issuer.asked == before
    for header in ({"jwk": issuer.key.as_dict(private=False)}, {"jku": f"{issuer.url}/jwks"}, {"crit": ["exp"]}):
        refused(server, issuer.token(server.url, header=header))


def test_a_token_that_was_changed_is_refused(server: Protected, issuer: Issuer) -> None:
    head, body, signature = issuer.token(server.url).split(".")
    changed = encoded(issuer.claims(server.url, sub="root")).decode()
    swapped = ("A" if signature[0] != "A" else "B") + signature[1:]
    for token in (f"{head}.{changed}.{signature}", f"{head}.{body}.{swapped}", f"{head}.{body}.{signature[:-8]}"):
        assert refused(server, token) == "the token has a wrong signature"


@pytest.mark.parametrize(
    "token",
    ["x", "a.b.c", "....", "e30.e30.e30", "a.b.c.d.e", "~~~", "W10.W10.AAAA", "-._~+/", "eyJ9.eyJ9.AAAA", "a" * 8000],
)
def test_what_is_no_token_of_anybody_is_refused(server: Protected, token: str) -> None:
    assert refused(server, token) == "the token is unknown here"


def test_huge_tokens_are_refused_unread(server: Protected, issuer: Issuer) -> None:
    assert refused(server, issuer.token(server.url, more="x" * 20_000)) == "the token is too long"
    deep = urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")
    assert refused(server, f"{deep}.{deep[:900]}.AAAA") == "the token is unknown here"
    assert server.call("whoami", token="x" * 70_000).status_code in (400, 431)


# --- malformed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer a b", "Bearer a,b", 'Bearer token="a"', "Bearer a=b", "DPoP", "Bearer \xe9"]
)
def test_what_does_not_hold_one_token_is_malformed(server: Protected, value: str) -> None:
    response = server.client.post(
        server.url,
        content=b"{}",
        headers=[(b"content-type", b"application/json"), (b"authorization", value.encode("latin-1"))],
    )
    assert response.status_code == 400
    assert challenge(response)["error"] == "invalid_request"


def test_two_headers_are_malformed(server: Protected, issuer: Issuer) -> None:
    token = f"Bearer {issuer.token(server.url)}".encode()
    for pair in ((token, token), (token, b"Bearer x"), (b"Bearer x", token)):
        headers = [(b"content-type", b"application/json"), *((b"authorization", value) for value in pair)]
        response = server.client.post(server.url, json=initialize("2025-11-25"), headers=headers)
        assert response.status_code == 400
    headers = [(b"authorization", b"Basic YTpi"), (b"authorization", token)]
    assert server.client.post(server.url, json=initialize("2025-11-25"), headers=headers).status_code == 401


def test_a_token_in_the_address_is_refused(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    body = stateless("tools/call", name="whoami")
    for query in (f"access_token={token}", f"a=b&access%5Ftoken={token}", "access_token="):
        response = server.client.post(f"{server.url}?{query}", json=body)
        assert response.status_code == 400
        assert token not in response.text
        allowed = {"authorization": f"Bearer {token}"}
        assert server.client.post(f"{server.url}?{query}", json=body, headers=allowed).status_code == 400


def test_a_token_in_the_body_is_none(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    form = server.client.post(server.url, data={"access_token": token})
    inside = server.post({**stateless("tools/call", name="whoami"), "access_token": token})
    assert form.status_code == inside.status_code == 401


# --- the log --------------------------------------------------------------------------------------------------


def test_refusals_are_logged_without_the_token(
    server: Protected, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    expired = issuer.token(server.url, sub="eve\nadmin", exp=At(-1000))
    good = issuer.token(server.url)
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


def test_the_answer_has_the_id_of_its_request(server: Protected, issuer: Issuer) -> None:
    response = server.call("delete", token=issuer.token(server.url))
    assert response.status_code == 403
    assert answer(response)["id"] == 1


def test_a_verifier_may_give_reasons_in_any_words() -> None:
    class Strict:
        async def verify(self, token: str, resource: str) -> None:
            raise InvalidToken("abgelaufen, ung\u00fcltig\r\nx-more: 1")

    with running(Strict()) as server:
        response = server.call("whoami", token="x" * 20)
        assert response.status_code == 401
        assert challenge(response)["error_description"] == "abgelaufen, ung?ltig\\r\\nx-more: 1"
        assert "x-more" not in response.headers
