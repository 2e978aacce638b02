"""Token requests of a client, the grants that they return, and the options of all ways to get tokens.

OAuth 2.1, section 3.2; RFC 7009 (revocation); RFC 8707 (resource indicators); RFC 9449 (DPoP).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, TypedDict

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from mcp_bindgen.http.client.bounded import shown
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..challenges import SCOPE
from ..dpop import HEADER, NONCE, ProofKey
from ..fetch import Fetcher
from ..metadata import ServerMetadata, origin
from ..store import Store
from .clients import KnownClient, error_text

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105

TOKEN = re.compile(r"[\x21-\x7e]+")
"""A token that can stand in a header."""

_SCHEMES = {"bearer": "Bearer", "dpop": "DPoP"}
_MAX_SCOPES = 100
_EXPIRY_MARGIN = 30.0  # seconds before the end of a token in which it is refreshed, or a tenth of its lifetime
_MAX_LIFETIME = 10.0 * 365 * 86400  # seconds
_MAX_TIME = 32503680000.0  # the year 3000 in seconds since 1970
_MAX_NONCES = 2  # nonces that a server may request for one token request
_MAX_NONCE_CHARACTERS = 1024
_PUBLIC_FIELDS = ("audience", "client_id", "redirect_uri", "resource", "scope", "token_type_hint")
_MIN_SECRET_CHARACTERS = 8  # shorter values occur in error messages by accident

_Time = Annotated[float, Field(ge=0, lt=_MAX_TIME)]


class TokenRefused(AuthorizationError):
    """A token endpoint refuses a request.

    Attributes:
        error: Error code (RFC 6749, section 5.2).
    """

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


class NotRevocable(AuthorizationError):
    """An authorization server has no revocation endpoint."""


# --- options --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerQuirks:
    """Known departures of one authorization server from the specification.

    Attributes:
        omit_resource: True if the server refuses the parameter `resource`; its tokens may be good elsewhere, too.
        assume_pkce: True if the server protects codes by PKCE although its metadata does not list methods.
        ignore_final_slash: True if its issuer is the same with and without a final slash, in metadata and in responses.
    """

    omit_resource: bool = False
    assume_pkce: bool = False
    ignore_final_slash: bool = False


class Options(TypedDict, total=False):
    """Options of all ways to get tokens.

    Attributes:
        scopes: Scopes to request in place of those that servers name.
        limit: The only scopes that servers may request; `None` for no limit.
        store: Store of tokens and registrations.
        fetcher: Client of authorization servers: certificates, proxies, and hosts in private networks.
        dpop: True to bind tokens to a key always, False never, `None` if both servers support it.
        quirks: Issuer -> its departures from the specification, for example of Microsoft Entra.
    """

    scopes: Iterable[str] | None
    limit: Iterable[str] | None
    store: Store | None
    fetcher: Fetcher | None
    dpop: bool | None
    quirks: Mapping[str, ServerQuirks]


# --- grants ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grant:
    """Tokens that a client was granted.

    Attributes:
        issuer: The authorization server.
        resource: Resource that the tokens are for.
        client_id: Client that the tokens were issued to.
        access_token: The access token.
        scheme: `Bearer` or `DPoP`.
        scopes: Requested and granted scopes.
        issued_at: Seconds since 1970.
        expires_at: End of the access token in seconds since 1970, if the server names it.
        refresh_token: The refresh token, if there is one.
        key: Private key that the tokens are bound to, as `ProofKey.dump` writes it, if they are.
        granted: Granted scopes, if the server names them.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    issuer: str
    resource: str
    client_id: str
    access_token: str = field(repr=False)
    scheme: str = "Bearer"
    scopes: tuple[str, ...] = ()
    issued_at: _Time = 0.0
    expires_at: _Time | None = None
    refresh_token: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    granted: tuple[str, ...] = ()

    @property
    def is_fresh(self) -> bool:
        """True if the access token needs no refresh yet."""
        if self.expires_at is None:
            return True
        margin = min(_EXPIRY_MARGIN, (self.expires_at - self.issued_at) / 10)
        return time.time() < self.expires_at - margin

    @property
    def is_expired(self) -> bool:
        """True if the access token is no longer valid."""
        return self.expires_at is not None and time.time() >= self.expires_at

    def dump(self) -> dict[str, Any]:
        """Return the record of the grant for a store."""
        return {**asdict(self), "scopes": list(self.scopes), "granted": list(self.granted)}

    @classmethod
    def load(cls, record: Mapping[str, Any] | None) -> Grant | None:
        """Return the grant of a record; `None` without a record, or if it is damaged."""
        try:
            return _GRANTS.validate_python(dict(record or {}))
        except ValidationError:
            return None

    def renewed(self, newer: Grant) -> Grant:
        """Return the grant of a refresh, with the old refresh token if the server issued no new one."""
        refresh_token, scopes = newer.refresh_token or self.refresh_token, newer.scopes or self.scopes
        return replace(newer, refresh_token=refresh_token, scopes=scopes, granted=newer.granted or self.granted)


_GRANTS = TypeAdapter(Grant)


@dataclass(frozen=True)
class TokenRequest:
    """Parameters of a request for a token, whatever the grant type.

    Attributes:
        server: The authorization server.
        resource: Resource that the token is for.
        scopes: Requested scopes.
        key: Key to bind the token to, if any.
        must_bind: True if a token without the key is refused.
        quirks: Departures of the server from the specification.
        endpoints: Sends the request.
    """

    server: ServerMetadata
    resource: str
    scopes: tuple[str, ...]
    key: ProofKey | None
    must_bind: bool
    quirks: ServerQuirks
    endpoints: Endpoints

    @property
    def target(self) -> dict[str, str]:
        """Form field `resource`, unless the server refuses it."""
        return {} if self.quirks.omit_resource else {"resource": self.resource}

    @property
    def fields(self) -> dict[str, str]:
        """Form fields `resource` and `scope`."""
        return self.target | ({"scope": " ".join(self.scopes)} if self.scopes else {})

    async def send(self, client: KnownClient, form: Mapping[str, str]) -> Grant:
        """Send a form and the field `resource` to the token endpoint; return the grant.

        Raises:
            TokenRefused: The server refuses the request.
            AuthorizationError: The server fails, or its response cannot be used.
        """
        sent = {**form, **self.target}
        document = await self.endpoints.post(self.server, self.server.token_endpoint, client, sent, self.key)
        return self.grant(document, client)

    def grant(self, document: Mapping[str, Any], client: KnownClient) -> Grant:
        """Return the grant in the response of a token endpoint.

        Raises:
            AuthorizationError: The response cannot be used.
        """
        issuer, token, kind = self.server.issuer, document.get("access_token"), document.get("token_type")
        if not isinstance(token, str) or TOKEN.fullmatch(token) is None:
            raise AuthorizationError(f"{issuer} issued no usable access token")
        scheme = _SCHEMES.get(kind.lower()) if isinstance(kind, str) else None
        if scheme is None or (scheme == "DPoP" and self.key is None):
            raise AuthorizationError(f"{issuer} issued an access token of a type that was not requested")
        if scheme == "Bearer" and self.must_bind:
            raise AuthorizationError(f"{issuer} issued an access token that is not bound to our key")
        refresh, scope = document.get("refresh_token"), document.get("scope")
        granted = split(scope) if isinstance(scope, str) else ()
        now, lifetime = time.time(), _seconds(document.get("expires_in"))
        return Grant(
            issuer=issuer,
            resource=self.resource,
            client_id=client.id,
            access_token=token,
            scheme=scheme,
            scopes=union(self.scopes, granted),
            issued_at=now,
            expires_at=None if lifetime is None else now + lifetime,
            refresh_token=refresh if isinstance(refresh, str) and refresh else None,
            key=None if self.key is None else self.key.dump(),
            granted=granted,
        )


# --- endpoints ------------------------------------------------------------------------------------------------


class Endpoints:
    """Endpoints of authorization servers, and the nonces that they request (RFC 9449, section 8).

    Args:
        fetcher: Sends the requests.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self._nonces: dict[str, str] = {}

    async def revoke(self, server: ServerMetadata, client: KnownClient, token: str, kind: str) -> None:
        """Revoke a token (RFC 7009), unless the server cannot revoke tokens of its kind.

        Args:
            server: The authorization server.
            client: Client of the token.
            token: The token.
            kind: `access_token` or `refresh_token`.

        Raises:
            AuthorizationError: The token cannot be revoked.
        """
        if server.revocation_endpoint is None:
            raise NotRevocable(f"{server.issuer} cannot revoke tokens; they end when they expire")
        try:
            await self.post(server, server.revocation_endpoint, client, {"token": token, "token_type_hint": kind})
        except TokenRefused as error:
            if error.error != "unsupported_token_type":
                raise

    async def post(
        self,
        server: ServerMetadata,
        url: str,
        client: KnownClient,
        form: Mapping[str, str],
        key: ProofKey | None = None,
    ) -> dict[str, Any]:
        """Post a form to an endpoint; return the response, empty if it has no content.

        Raises:
            TokenRefused: The server refuses the request.
            AuthorizationError: The server fails, or cannot be reached.
        """
        for _ in range(_MAX_NONCES + 1):
            credentials = client.credentials(server)
            sent = {**form, **credentials.form}
            headers = dict(credentials.headers)
            try:
                place = origin(url)
                nonce = self._nonces.get(place)
                if key is not None:
                    headers[HEADER] = key.prove("POST", url, nonce=nonce)
            except ValueError:
                raise AuthorizationError(f"{server.issuer} names an endpoint that is no URL") from None
            fetched = await self.fetcher.post_form(url, sent, headers=headers)
            new = fetched.headers.get(NONCE)
            if new and len(new) <= _MAX_NONCE_CHARACTERS:
                self._nonces[place] = new
            if key is None or not new or new == nonce or (fetched.object or {}).get("error") != "use_dpop_nonce":
                break
        else:
            raise AuthorizationError(f"{shown(url)} requests a new nonce for each proof")
        document = fetched.object
        if fetched.is_failure:
            raise AuthorizationError(f"{server.issuer} answered {fetched.status}; try again later", is_temporary=True)
        if fetched.is_success and "error" not in (document or {}):
            return document or {}
        if document is None:
            raise AuthorizationError(f"{server.issuer} answered {fetched.status} without a JSON object")
        hidden = [value for name, value in sent.items() if name not in _PUBLIC_FIELDS and not name.endswith("_type")]
        hidden += [credentials.secret, *(value.rpartition(" ")[2] for value in headers.values())]
        code, reason = document.get("error"), error_text(document) or "no reason"
        raw = f"{code} {document.get('error_description')}"
        if any(len(value) >= _MIN_SECRET_CHARACTERS and value in raw for value in hidden):
            reason = "its error message repeats the request"
        raise TokenRefused(f"{server.issuer} refuses the request: {reason}", code if isinstance(code, str) else "")


# --- scopes ---------------------------------------------------------------------------------------------------


def split(scope: str) -> tuple[str, ...]:
    """Return the scopes in a text, each once, without invalid ones.

    Raises:
        AuthorizationError: The text has more than 100 scopes.
    """
    scopes = dict.fromkeys(one for one in scope.split(" ") if SCOPE.fullmatch(one))
    if len(scopes) > _MAX_SCOPES:
        raise AuthorizationError(f"a server requests more than {_MAX_SCOPES} scopes")
    return tuple(scopes)


def union(*many: Sequence[str]) -> tuple[str, ...]:
    """Return all scopes of some lists, each once."""
    return tuple(dict.fromkeys(scope for scopes in many for scope in scopes))


def _seconds(value: object) -> float | None:
    """Return the lifetime of a token; `None` if the value is no positive number."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return min(seconds, _MAX_LIFETIME) if seconds > 0 else None
