"""Server recipes in docs/how-to/authorization.md, with tokens as vendors document them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcp_bindgen.auth import InvalidToken, JwtVerifier, TokenVerifier
from mcp_bindgen.runtime import Identity
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.issuer import Issuer
from tests.harness.protected import running, said

RESOURCE = "https://example.org/mcp"
APP = "11111111-2222-3333-4444-555555555555"
LONG = f"api://{APP}/mcp.read"
NONE: dict[str, Any] = {"scope": ..., "client_id": ..., "jti": ...}

VENDORS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # options of the verifier, header and claims of a token, and differences of an ID token from the same login
    "keycloak": (
        {"types": ("JWT",)},
        {"typ": "JWT"},
        {**NONE, "aud": [RESOURCE, "account"], "azp": "desk", "typ": "Bearer", "scope": "openid mcp:read"},
        {"aud": "desk", "typ": "ID", "nonce": "n", "at_hash": "h", "scope": ...},
    ),
    "entra": (
        {"types": ("JWT",), "audience": APP},
        {"typ": "JWT"},
        {**NONE, "aud": APP, "azp": "desk", "scp": "mcp:read", "oid": "o", "tid": "t", "ver": "2.0"},
        {"azp": ..., "scp": ..., "nonce": "n", "aud": APP},
    ),
    "auth0": (
        {},
        {"typ": "at+jwt"},
        {"aud": [RESOURCE, "https://tenant.auth0.com/userinfo"], "client_id": "desk", "scope": "openid mcp:read"},
        {"aud": "desk", "nonce": "n"},
    ),
    "cognito, bound to a resource": (
        {"types": ("",)},
        {"typ": ...},
        {"aud": RESOURCE, "client_id": "desk", "token_use": "access", "version": 2, "scope": "mcp:read"},
        {"aud": "desk", "client_id": ..., "token_use": "id", "scope": ...},
    ),
    "cognito": (
        {"types": ("",), "audience": ["desk", "phone"], "audience_claim": "client_id"},
        {"typ": ...},
        {"aud": ..., "client_id": "desk", "token_use": "access", "version": 2, "scope": "mcp:read"},
        {"aud": "desk", "client_id": ..., "token_use": "id", "scope": ...},
    ),
}


@pytest.mark.full
@each("vendor", VENDORS)
async def test_documented_options_accept_access_tokens_of_each_vendor(vendor: str) -> None:
    options, header, claims, id_token = VENDORS[vendor]
    issuer = Issuer()
    verifier = JwtVerifier(issuer.url, keys=issuer.jwks(), **options)
    token = issuer.token(RESOURCE, header=header, **claims)
    found = await verifier.verify(token, RESOURCE)
    assert found is not None
    assert (found.subject, found.client) == ("alice", "desk")
    assert found.has("mcp:read")
    with pytest.raises(InvalidToken):  # an ID token of the same login
        await verifier.verify(issuer.token(RESOURCE, header=header, **claims | id_token), RESOURCE)
    elsewhere = {"client_id": "other"} if "audience_claim" in options else {"aud": "https://other.example/mcp"}
    with pytest.raises(InvalidToken, match="not for this resource"):
        await verifier.verify(issuer.token(RESOURCE, header=header, **claims | elsewhere), RESOURCE)
    if header["typ"] != "at+jwt":  # without the option `types`
        await refused(JwtVerifier(issuer.url, keys=issuer.jwks()).verify(token, RESOURCE), InvalidToken, "type")


async def test_id_and_refresh_tokens_are_recognized_by_their_claims() -> None:
    issuer = Issuer()
    verifier = JwtVerifier(issuer.url, keys=issuer.jwks(), types=("JWT", ""))
    for kind in ({"typ": "ID"}, {"typ": "Refresh"}, {"token_use": "id"}):
        with pytest.raises(InvalidToken, match="no access token"):
            await verifier.verify(issuer.token(RESOURCE, header={"typ": "JWT"}, **kind), RESOURCE)


def test_client_ids_as_audience_must_be_configured() -> None:
    with pytest.raises(ValueError, match="name the clients"):
        JwtVerifier("https://example.org", audience_claim="client_id")


def test_short_scopes_of_entra_tokens_satisfy_the_long_scopes(issuer: Issuer) -> None:
    verifier = JwtVerifier(issuer.url, audience=APP, types=("JWT",))
    with running(verifier, scopes={"*": [LONG]}, implies={"mcp.read": [LONG]}) as server:
        claims = {**NONE, "aud": APP, "azp": "desk"}
        token = issuer.token(RESOURCE, header={"typ": "JWT"}, scp="mcp.read", **claims)
        assert said(server.call("whoami", token=token)) == "alice"
        lacking = server.call("whoami", token=issuer.token(RESOURCE, header={"typ": "JWT"}, scp="other", **claims))
        assert lacking.status_code == 403
        assert f'scope="{LONG}"' in lacking.headers["www-authenticate"]


class GoogleTokens:
    """Verifier of opaque tokens whose audience is a client, as in the documentation."""

    issuers = ("https://accounts.google.com",)

    async def verify(self, token: str, resource: str) -> Identity | None:
        if {"ya29.mine": "desk", "ya29.x": "x"}.get(token) != "desk":
            return None
        now = time.time()
        known: Any = {"issuer": self.issuers[0], "subject": "g-1", "client": "desk", "scopes": frozenset({"openid"})}
        return Identity(**known, expires=now + 600, cache_until=now + 30)


def test_opaque_google_tokens_of_other_clients_are_refused() -> None:
    verifier: TokenVerifier = GoogleTokens()
    with running(verifier, scopes={"*": ["openid"]}) as server:
        assert said(server.call("whoami", token="ya29.mine")) == "g-1"
        for other in ("ya29.x", "ya29.unknown"):
            assert server.call("whoami", token=other).status_code == 401
        assert server.client.get(server.metadata_url).json()["authorization_servers"] == [*GoogleTokens.issuers]
