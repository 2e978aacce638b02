"""Read what a token endpoint answers, and keep what was granted (OAuth 2.1, section 3.2; RFC 9449)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..metadata import ServerMetadata

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_MOST_SCOPES = 100
_MARGIN = 30.0  # seconds before a token expires in which it is not used any more, or a tenth of its life
_LONGEST = 10.0 * 365 * 86400  # seconds that a token may live
_LAST = 32503680000.0  # the year 3000 in seconds since 1970: what is later was not kept by us
_SAID = 200


class TokenRefused(AuthorizationError):
    """A token endpoint says no.

    Attributes:
        error: Its code (RFC 6749, section 5.2).
    """

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


@dataclass(frozen=True)
class Grant:
    """Hold what a client was granted.

    Attributes:
        issuer: Who granted it.
        resource: What it is for.
        client_id: Whom it was granted to.
        access_token: What is sent to the resource.
        scheme: How: `Bearer` or `DPoP`.
        scopes: The scopes that were asked for, and those that were granted.
        issued_at: When, in seconds since 1970.
        expires_at: When the access token expires, if that was said.
        refresh_token: What another one is got with, if anything is.
        key: The private key that the tokens are bound to, if they are.
    """

    issuer: str
    resource: str
    client_id: str
    access_token: str = field(repr=False)
    scheme: str = "Bearer"
    scopes: tuple[str, ...] = ()
    issued_at: float = 0.0
    expires_at: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)

    @property
    def is_fresh(self) -> bool:
        """Tell whether the access token will last for a while."""
        if self.expires_at is None:
            return True
        margin = min(_MARGIN, (self.expires_at - self.issued_at) / 10)
        return time.time() < self.expires_at - margin

    @property
    def is_expired(self) -> bool:
        """Tell whether the access token is no longer valid."""
        return self.expires_at is not None and time.time() >= self.expires_at

    def dump(self) -> dict[str, Any]:
        """Return it as it is kept."""
        return {**asdict(self), "scopes": list(self.scopes)}

    @classmethod
    def load(cls, kept: Mapping[str, Any] | None) -> Grant | None:
        """Return what was kept; `None` if there is nothing, or nothing that fits."""
        given: dict[str, Any] = dict(kept or {})
        try:
            given["scopes"] = tuple(given.get("scopes", ()))
            found = cls(**given)
        except TypeError:
            return None
        texts: list[Any] = [found.issuer, found.resource, found.client_id, found.access_token, *found.scopes]
        texts += [one for one in (found.refresh_token, found.key) if one is not None]
        times: list[Any] = [found.issued_at, 0.0 if found.expires_at is None else found.expires_at]
        fits = all(isinstance(one, int | float) and 0 <= one < _LAST for one in times)
        return found if fits and all(isinstance(one, str) for one in texts) else None

    def renewed(self, newer: Grant) -> Grant:
        """Return what a refresh granted, with the refresh token that goes on to hold if there is no new one."""
        return replace(
            newer,
            refresh_token=newer.refresh_token or self.refresh_token,
            scopes=newer.scopes or self.scopes,
        )


def granted(
    server: ServerMetadata,
    document: Mapping[str, Any],
    *,
    resource: str,
    client_id: str,
    scopes: Sequence[str],
    key: str | None,
    must_bind: bool,
) -> Grant:
    """Return what a token endpoint granted.

    Args:
        server: Whose endpoint it is.
        document: Its answer.
        resource: What the tokens are for.
        client_id: Whose they are.
        scopes: Those that were asked for.
        key: The private key whose possession was proven, if one was.
        must_bind: Whether tokens that are not bound to it are refused.

    Raises:
        AuthorizationError: The answer cannot be used.
    """
    token, kind = document.get("access_token"), document.get("token_type")
    if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
        raise AuthorizationError(f"{server.issuer} issued no usable access token")
    scheme = {"bearer": "Bearer", "dpop": "DPoP"}.get(kind.lower()) if isinstance(kind, str) else None
    if scheme is None or (scheme == "DPoP" and key is None):
        raise AuthorizationError(f"{server.issuer} issued an access token of a kind that nobody asked for")
    if scheme == "Bearer" and must_bind:
        raise AuthorizationError(f"{server.issuer} issued an access token that is not bound to our key")
    refresh, granted_scope = document.get("refresh_token"), document.get("scope")
    now = time.time()
    lifetime = _seconds(document.get("expires_in"))
    return Grant(
        issuer=server.issuer,
        resource=resource,
        client_id=client_id,
        access_token=token,
        scheme=scheme,
        scopes=union(scopes, split(granted_scope) if isinstance(granted_scope, str) else ()),
        issued_at=now,
        expires_at=None if lifetime is None else now + lifetime,
        refresh_token=refresh if isinstance(refresh, str) and refresh else None,
        key=key,
    )


def refusal(server: ServerMetadata, document: Mapping[str, Any], hidden: Sequence[str]) -> TokenRefused:
    """Return the error for a token endpoint that says no; what was sent is not repeated.

    Args:
        server: Whose endpoint it is.
        document: Its answer.
        hidden: What was sent, as far as it may be secret.
    """
    code, words = document.get("error"), document.get("error_description")
    code = code if isinstance(code, str) and code else "no reason"
    said = f"{code}: {words}" if isinstance(words, str) and words else code
    if any(len(value) > 7 and value in said for value in hidden):
        said = "what it says repeats what it was sent"
    return TokenRefused(f"{server.issuer} issues no token: {harmless(said)[:_SAID]}", code)


def split(scope: str) -> tuple[str, ...]:
    """Return the scopes in a text, each once; those that cannot be ones are left out.

    Raises:
        AuthorizationError: There are too many to be meant.
    """
    scopes = dict.fromkeys(one for one in scope.split(" ") if _SCOPE.fullmatch(one))
    if len(scopes) > _MOST_SCOPES:
        raise AuthorizationError(f"a server wants more than {_MOST_SCOPES} scopes")
    return tuple(scopes)


def union(*many: Sequence[str]) -> tuple[str, ...]:
    """Return all scopes of some lists, each once."""
    return tuple(dict.fromkeys(scope for scopes in many for scope in scopes))


def _seconds(value: object) -> float | None:
    """Return how long a token lives; `None` if that was not said, or cannot be meant."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return None
    return min(seconds, _LONGEST) if seconds > 0 else None
