"""A server refuses arbitrary request headers with a proper error, unless the issuer signed the token."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_bindgen.auth import JwtVerifier, ResourceServer
from mcp_bindgen.http.server.errors import HttpError
from tests.harness.effort import examples
from tests.harness.issuer import Issuer, Prover, encoded, signed

RESOURCE = "https://example.org/mcp"
ISSUER = Issuer("https://auth.example.org")
PROVER = Prover()
AUTH = ResourceServer(RESOURCE, JwtVerifier(ISSUER.url, keys=ISSUER.jwks()), dpop="optional")
GOOD = ISSUER.claims(RESOURCE)
HEADER = {"typ": "at+jwt", "alg": "RS256", "kid": "k1"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def changed(whole: dict[str, Any], *more: str) -> st.SearchStrategy[dict[str, Any]]:
    """Generate copies of a JSON object with changed, added or removed members."""
    names = st.sampled_from([*whole, *more])
    return st.dictionaries(names, VALUES | st.just(...), max_size=4).map(
        lambda changes: {name: value for name, value in {**whole, **changes}.items() if value is not ...}
    )


def outcome(query: bytes = b"", **headers: bytes) -> int:
    """Return the status of a request with these headers; 200 if it is accepted."""
    named = {name.encode(): value for name, value in headers.items()}
    request: Any = SimpleNamespace(scope={"method": "POST", "path": "/mcp", "query_string": query}, headers=named)
    try:
        asyncio.run(AUTH.authenticate(request))
    except HttpError as error:
        denied = error
    else:
        return 200
    assert all(name == b"www-authenticate" and b"\n" not in value for name, value in denied.headers)
    return denied.status


@settings(max_examples=examples(60, 300), deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_arbitrary_authorization_headers_are_refused(value: bytes, proof: bytes) -> None:
    assert outcome(authorization=value, dpop=proof) in (400, 401)
    assert outcome(authorization=b"Bearer " + value) in (400, 401)
    assert outcome(authorization=b"DPoP " + value, dpop=proof) in (400, 401)


@settings(max_examples=examples(60, 300), deadline=None)
@given(st.binary(max_size=200))
@example(b"%ff=1")
def test_arbitrary_queries_are_refused(query: bytes) -> None:
    assert outcome(query=query) in (400, 401)
    assert outcome(query=query + b"&access_tok%65n=x") == 400


@pytest.mark.full
@settings(max_examples=examples(60, 300), deadline=None)
@given(changed(HEADER, "jwk", "crit", "x"), changed(GOOD, "nbf", "cnf", "scp", "azp"), VALUES)
def test_any_token_with_an_invalid_signature_is_refused(
    header: dict[str, Any], claims: dict[str, Any], more: Any
) -> None:
    for body in (claims, more):
        assert outcome(authorization=b"Bearer " + b".".join([encoded(header), encoded(body), b"AAAA"])) == 401


@pytest.mark.full
@settings(max_examples=examples(40, 200), deadline=None)
@given(changed(GOOD, "nbf", "cnf", "scp", "azp", "nonce", "typ"))
@example({**GOOD, "exp": 10**400})
@example({**GOOD, "nbf": -(10**400)})
def test_signed_claims_are_accepted_only_if_they_are_valid(claims: dict[str, Any]) -> None:
    status = outcome(authorization=b"Bearer " + signed(HEADER, claims, ISSUER.key).encode())
    assert status in (200, 401)
    if status == 200:
        audience = claims["aud"]
        assert RESOURCE in (audience if isinstance(audience, list) else [audience])
        assert claims["iss"] == ISSUER.url
        assert not isinstance(claims["exp"], bool | str)
        assert "cnf" not in claims or claims["cnf"] is None


@pytest.mark.full
@settings(max_examples=examples(40, 200), deadline=None)
@given(
    changed({"typ": "dpop+jwt", "alg": "ES256", "jwk": PROVER.key.as_dict(private=False)}, "crit"),
    changed({"jti": "a", "htm": "POST", "htu": RESOURCE, "iat": GOOD["iat"], "ath": "x"}, "nonce"),
)
def test_any_proof_with_an_invalid_signature_is_refused(header: dict[str, Any], claims: dict[str, Any]) -> None:
    token = ISSUER.token(RESOURCE, cnf={"jkt": PROVER.thumbprint})
    proof = b".".join([encoded(header), encoded(claims), b"AAAA"])
    assert outcome(authorization=b"DPoP " + token.encode(), dpop=proof) == 401
