"""Check what an issuer says of a token: its audience, its times, whose it is (RFC 7519, RFC 9068, RFC 7662)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array
from mcp_bindgen.runtime.protocol.access import SKEW, Identity

from .verifier import InvalidToken

_ID_TOKEN = ("nonce", "at_hash", "c_hash", "s_hash")
_KINDS, _OTHERS = ("typ", "token_use"), ("ID", "Refresh", "id")  # of Keycloak and Cognito
_MOST_SCOPES = 1000
_FAR = 1e15  # seconds since 1970 that are no time any more; some JSON numbers are too large to calculate with


@dataclass(frozen=True)
class ClaimRules:
    """Check the claims of one issuer's tokens.

    Attributes:
        issuer: The issuer, character by character.
        audience: What the audience must have one of; `None`: the resource itself.
        audience_claim: The claim that is the audience.
        skew: Seconds by which clocks may differ.
        expiry: Whether the claims must say when the token expires.
    """

    issuer: str
    audience: tuple[str, ...] | None = None
    audience_claim: str = "aud"
    skew: float = SKEW
    expiry: bool = True

    def identity(self, claims: Mapping[str, Any], resource: str, now: float, keep: float) -> Identity:
        """Return whose token it is, by claims that its issuer has vouched for.

        Args:
            claims: The claims; their issuer is the one of these rules.
            resource: The server that the token was sent to.
            now: Seconds since 1970.
            keep: Seconds for which the answer may be kept, but not beyond the end of the token.

        Raises:
            InvalidToken: They are not those of an access token that is good here and now.
        """
        client = _text(claims, "client_id") or _text(claims, "azp") or _text(claims, "appid")
        subject = _text(claims, "sub") or client
        if subject is None:
            raise InvalidToken("the token does not say whose it is")
        expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
        found = Identity(
            issuer=self.issuer,
            subject=subject,
            client=client,
            scopes=frozenset(_scopes(claims)),
            claims=claims,
            expires=expires,
            cache_until=now + keep if expires is None else min(expires + self.skew, now + keep),
        )
        if expires is None and self.expiry:
            raise InvalidToken("the token does not say when it expires", found)
        if expires is not None and now >= expires + self.skew:
            raise InvalidToken("the token has expired", found)
        if begins is not None and now < begins - self.skew:
            raise InvalidToken("the token is not valid yet", found)
        if issued is not None and now < issued - self.skew:
            raise InvalidToken("the token was issued in the future", found)
        if not self.is_for(claims.get(self.audience_claim), resource):
            raise InvalidToken("the token is not for this resource", found)
        if any(name in claims for name in _ID_TOKEN) or any(claims.get(name) in _OTHERS for name in _KINDS):
            raise InvalidToken("the token is no access token", found)
        return found

    def is_for(self, audience: Any, resource: str) -> bool:
        """Tell whether an `aud`, a text or a list of them, has what is demanded, as a whole and exactly."""
        wanted = self.audience or spellings(resource)
        named: list[Any] = audience if is_array(audience) else [audience]
        return any(isinstance(one, str) and one in wanted for one in named)


def audiences(given: str | Collection[str] | None) -> tuple[str, ...] | None:
    """Return one audience or several as `ClaimRules` has them."""
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)


def spellings(resource: str) -> Collection[str]:
    """Return the two ways to write a resource without a path, which are the same URL; else only the resource."""
    return (resource, f"{resource}/") if resource.count("/") == 2 else (resource,)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_FAR < value < _FAR:
        raise InvalidToken(f"the {name} of the token is not a time")
    return value


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes: `scope` as RFC 9068 has it, or `scp`, a text (Entra) or a list (Okta)."""
    value = claims.get("scope", claims.get("scp"))
    named: list[Any] = value if is_array(value) else value.split(" ") if isinstance(value, str) else []
    return [one for one in named[:_MOST_SCOPES] if isinstance(one, str) and one]
