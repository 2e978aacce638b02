"""Authorization servers that depart from the specification as those of some vendors do, by their documentation.

Each is a `World` with what a client sees there: where the metadata is and what it lacks, which parameters are refused
and which are wanted. Their names are those of the vendors; none of them is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.support.authorization_world import World
from tests.support.scripted_http_server import Heard


@dataclass(frozen=True, repr=False)
class Vendor:
    """An authorization server's departures.

    Attributes:
        name: Whose it is like.
        path: The path of its issuer.
        places: Where its metadata is: `oauth` or `openid`, before or after the path of the issuer.
        says: What its metadata says otherwise; `...` for what it lacks.
        refuses: Parameters that it refuses, in requests for access and for tokens.
        wants: Parameters that it wants in requests for access; without them the token is good for nothing here.
        sends_issuer: Whether it names itself in responses (RFC 9207).
        registers: Whether clients can register themselves.
        wants_secret: Whether it gives tokens only to clients with a secret.
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
    """An MCP server, and an authorization server as a vendor has it."""

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
            self.tokens.pop(issued["access_token"])  # it is for something else, and no server of ours takes it
        return json.loads(json.dumps(issued))  # type: ignore[no-any-return]
