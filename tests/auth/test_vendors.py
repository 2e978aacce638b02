"""Client recipes in docs/how-to/authorization.md, with simulated authorization servers of vendors."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_bindgen.auth import ClientSecret, KnownClient, ServerQuirks
from tests.harness.authorization_world import CALLBACK, oauth, playing
from tests.harness.effort import each
from tests.harness.vendors import AUTH0, COGNITO, ENTRA, GOOGLE, KEYCLOAK, Vendor, VendorWorld

LONG = "api://application/mcp.read"


def entra(given: VendorWorld, **departs: bool) -> dict[str, Any]:
    quirks = {given.issuer: ServerQuirks(**({"omit_resource": True, "assume_pkce": True} | departs))}
    return {"client": KnownClient("app", given.issuer, CALLBACK), "scopes": [LONG], "quirks": quirks}


def recipe(given: VendorWorld) -> dict[str, Any]:
    """Return the options that the documentation gives for a vendor."""
    if given.vendor is ENTRA:
        return entra(given)
    if given.vendor is COGNITO:
        return {"client": KnownClient("app", given.issuer), "quirks": {given.issuer: ServerQuirks(assume_pkce=True)}}
    if given.vendor is AUTH0:
        return {"parameters": {"audience": given.url}}
    if given.vendor is GOOGLE:
        client = ClientSecret("app", given.issuer, secret="not-so-secret", method="client_secret_post")
        return {"client": client, "scopes": ["openid"], "parameters": {"access_type": "offline", "prompt": "consent"}}
    return {"client": KnownClient("app", given.issuer)}


@pytest.mark.full
@each("vendor", [KEYCLOAK, ENTRA, AUTH0, GOOGLE, COGNITO])
async def test_a_login_with_the_documented_options_succeeds(vendor: Vendor) -> None:
    async with playing(VendorWorld(vendor)) as given:
        auth = oauth(**recipe(given))
        token = await given.let_in(auth)
        (query,) = given.queries
        assert (query["code_challenge_method"], "resource" in query) == ("S256", "resource" not in vendor.refuses)
        assert len(given.registered) == vendor.registers
        given.tokens.clear()
        assert await given.let_in(auth) != token
        assert given.counts("GET /authorize") == 1  # refreshed without a login
        assert "refused" not in " ".join(given.log)


@each(
    ("vendor", "changes", "said"),
    [
        (ENTRA, {"assume_pkce": False}, "does not announce PKCE"),
        (ENTRA, {"omit_resource": False}, "invalid_target: the resource does not match"),
        (COGNITO, {"quirks": {}}, "does not announce PKCE"),
        (KEYCLOAK, {"client": ()}, "lets no client register itself"),
        (GOOGLE, {"client": KnownClient("app")}, "client_secret is missing"),
        (AUTH0, {"parameters": None}, "refuses the tokens"),
    ],
)
async def test_a_login_without_a_required_vendor_option_fails(
    vendor: Vendor, changes: dict[str, Any], said: str
) -> None:
    async with playing(VendorWorld(vendor)) as given:
        await given.denied(oauth(**entra(given, **changes) if vendor is ENTRA else recipe(given) | changes), said)
        assert given.counts("GET /authorize") <= 1


async def test_a_server_that_announces_the_iss_parameter_must_send_it() -> None:
    """A server that announces the `iss` parameter must send it."""
    async with playing(VendorWorld(KEYCLOAK)) as given:
        given.edit_response = lambda back: {name: value for name, value in back.items() if name != "iss"}
        await given.denied(oauth(**recipe(given)), "does not come from")
        assert given.counts("POST /token") == 0
