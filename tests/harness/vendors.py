"""Authorization servers that deviate from the specification in the ways that vendors document.

Each is a `World` with the behaviour that a client sees: the locations and gaps of the metadata, and refused and
required parameters. The names are the names of vendors, but no request goes to them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.harness.authorization_world import World
from tests.harness.scripted_http_server import Heard


@dataclass(frozen=True, repr=False)
class Vendor:
    """Deviations of an authorization server from the specification.

    Attributes:
        name: The vendor.
        path: The path of the issuer URL.
        places: Locations of the metadata: `oauth` or `openid`, before or after the path of the issuer.
        says: Changed metadata fields; `...` removes a field.
        refuses: Parameters that it rejects in authorization and token requests.
        wants: Required authorization parameters; without them, the token has another audience and is useless here.
        sends_issuer: True if authorization responses contain `iss` (RFC 9207).
        registers: True if it supports dynamic client registration.
        wants_secret: True if token requests need a client secret.
    """

    name: str
    path: str = ""
    places: tuple[str, ...] = ()
    says: dict[str, Any] = field(default_factory=dict[str, Any])
    refuses: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    sends_issuer: bool = False
    registers: bool = False
    wants_secret: bool = False

    def __repr__(self) -> str:
        return self.name


KEYCLOAK = Vendor(
    "keycloak",
    "/realms/home",
    ("before oauth", "after openid"),
    sends_issuer=True,
    says={"scopes_supported": ["openid", "offline_access", "mcp:read"]},
)
ENTRA = Vendor(
    "entra",
    "/tenant/v2.0",
    ("after openid",),
    {"code_challenge_methods_supported": ..., "scopes_supported": ["openid", "profile", "email", "offline_access"]},
    refuses=("resource",),
    wants=("scope",),
)
AUTH0 = Vendor("auth0", "/", ("before oauth", "before openid"), registers=True, wants=("audience",))
GOOGLE = Vendor(
    "google", "", ("before openid",), {"scopes_supported": ["openid", "email", "profile"]}, wants_secret=True
)
COGNITO = Vendor("cognito", "/pool_1", ("after openid",), {"code_challenge_methods_supported": ...})

_NAMES = {"oauth": "oauth-authorization-server", "openid": "openid-configuration"}


class VendorWorld(World):
    """An MCP server with an authorization server that behaves like a vendor's."""

    def __init__(self, vendor: Vendor) -> None:
        super().__init__()
        self.vendor = vendor

    @property
    def issuer(self) -> str:
        return f"{super().issuer}{self.vendor.path}"

    def _server(self) -> dict[str, Any]:
        document = super()._server()
        base = super().issuer
        for name in ("authorization", "token", "registration", "revocation"):
            document[f"{name}_endpoint"] = document[f"{name}_endpoint"].replace(self.issuer, base)
        document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        for name in ("dpop_signing_alg_values_supported", "authorization_response_iss_parameter_supported"):
            del document[name]
        if self.vendor.sends_issuer:
            document["authorization_response_iss_parameter_supported"] = True
        if not self.vendor.registers:
            del document["registration_endpoint"]
        return {name: value for name, value in (document | self.vendor.says).items() if value is not ...}

    async def play_issuing(self, heard: Heard) -> None:
        if heard.path.startswith("/.well-known/") or "/.well-known/" in heard.path:
            self.log.append(f"{heard.method} {heard.path}")
            path = self.vendor.path.rstrip("/")
            for place in self.vendor.places:
                side, _, kind = place.partition(" ")
                name = f"/.well-known/{_NAMES[kind]}"
                if heard.path == (f"{name}{path}" if side == "before" else f"{path}{name}"):
                    await heard.json(self._server())
                    return
            await heard.end(404)
            return
        query, form = dict(parse_qsl(heard.query)), dict(parse_qsl(heard.body.decode()))
        refused = {"error": "invalid_target", "error_description": "the resource does not match the scopes"}
        if heard.path == "/authorize" and any(name in query for name in self.vendor.refuses):
            self.log.append(f"refused {heard.path}")
            back = urlencode(refused | {"state": query["state"]})
            await heard.end(302, location=f"{query['redirect_uri']}?{back}")
        elif heard.path == "/token" and any(name in form for name in self.vendor.refuses):
            self.log.append(f"refused {heard.path}")
            await heard.json(refused, 400)
        elif heard.path == "/token" and self.vendor.wants_secret and "client_secret" not in form:
            await heard.json({"error": "invalid_request", "error_description": "client_secret is missing."}, 400)
        else:
            await super().play_issuing(heard)

    async def _authorize(self, heard: Heard) -> None:
        if not self.vendor.sends_issuer:
            self.edit_response = lambda back: {name: value for name, value in back.items() if name != "iss"}
        await super()._authorize(heard)

    def _issue(self, scope: str, family: int, jkt: str | None, client: str | None) -> dict[str, Any]:
        issued = super()._issue(scope, family, jkt, client)
        asked = self.queries[-1] if self.queries else {}
        if any(name not in asked for name in self.vendor.wants):
            self.tokens.pop(issued["access_token"])  # the token has another audience, so no test server accepts it
        return json.loads(json.dumps(issued))  # type: ignore[no-any-return]
