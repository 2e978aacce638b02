"""Verification of tokens: its protocol and errors, the checks of claims, and a table of API keys."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_bindgen.runtime.model.json_types import is_array
from mcp_bindgen.runtime.protocol.access import SKEW, Identity

_MIN_TOKEN_CHARACTERS = 16
_MAX_SCOPES = 1000
_MAX_TIME = 1e15  # seconds since 1970; arithmetic fails for some larger JSON numbers
_ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash", "s_hash")
_TYPE_CLAIMS, _OTHER_TYPES = ("typ", "token_use"), ("ID", "Refresh", "id")  # of Keycloak and Cognito


class InvalidToken(Exception):
    """A token is not accepted.

    Args:
        reason: Reason, for the client.
        identity: Identity in the token, if its issuer has signed it.

    Attributes:
        code: Error code in the challenge (RFC 6750, section 3.1; RFC 9449, section 7.1).
    """

    code = "invalid_token"

    def __init__(self, reason: str, identity: Identity | None = None) -> None:
        super().__init__(reason)
        self.identity = identity


class InvalidProof(InvalidToken):
    """A proof is not accepted; the message says why."""

    code = "invalid_dpop_proof"


class NonceWanted(InvalidProof):
    """A proof lacks the nonce of this server, or has an old one."""

    code = "use_dpop_nonce"


class VerifierUnavailable(Exception):
    """A token cannot be verified now: its issuer does not answer."""


class TokenVerifier(Protocol):
    """Verifier of tokens of one type, for example by a look-up.

    It may have `issuers`, the authorization servers that issue tokens to clients.
    """

    async def verify(self, token: str, resource: str) -> Identity | None:
        """Return the identity of a token; `None` for tokens of other types, so that the next verifier is called.

        Args:
            token: The token.
            resource: The resource: the audience that the token must have.

        Raises:
            InvalidToken: The token is not accepted, and no other verifier is called.
            VerifierUnavailable: The token cannot be verified now.
        """


class StaticTokens:
    """API keys and other tokens that do not change: `StaticTokens({os.environ["KEY"]: "alice"})`.

    The comparison takes the same time for all tokens. Only digests are kept.

    Args:
        tokens: Token -> its identity, or the name of its subject without scopes.

    Raises:
        ValueError: A token is so short that it can be guessed.
    """

    def __init__(self, tokens: Mapping[str, Identity | str]) -> None:
        if any(len(token) < _MIN_TOKEN_CHARACTERS for token in tokens):
            raise ValueError(f"tokens must have at least {_MIN_TOKEN_CHARACTERS} characters")
        known = {token: Identity(subject=one) if isinstance(one, str) else one for token, one in tokens.items()}
        self._known = [(_digest(token), identity) for token, identity in known.items()]

    async def verify(self, token: str, resource: str) -> Identity | None:
        """Return the identity of a token in the table."""
        digest = _digest(token)
        found = [identity for known, identity in self._known if hmac.compare_digest(known, digest)]
        return found[0] if found else None


@dataclass(frozen=True)
class ClaimRules:
    """Checks of the claims in one issuer's tokens (RFC 7519, RFC 7662, RFC 9068).

    Attributes:
        issuer: The issuer, character by character.
        audience: Accepted audiences; `None` for the resource itself.
        audience_claim: Name of the claim with the audience.
        skew: Seconds by which clocks may differ.
        requires_expiry: True if tokens without `exp` are refused.
    """

    issuer: str
    audience: Collection[str] | None = None
    audience_claim: str = "aud"
    skew: float = SKEW
    requires_expiry: bool = True

    def identity(self, claims: Mapping[str, Any], resource: str, now: float, keep: float) -> Identity:
        """Return the identity in claims that the issuer has signed or stated.

        Args:
            claims: Claims of this issuer.
            resource: The resource that received the token.
            now: Seconds since 1970.
            keep: Seconds for which the result may be cached, but not beyond the end of the token.

        Raises:
            InvalidToken: The claims do not belong to an access token that is valid now for this resource.
        """
        client = _text(claims, "client_id") or _text(claims, "azp") or _text(claims, "appid")
        subject = _text(claims, "sub") or client
        if subject is None or not isinstance(claims.get("sub"), str | None):  # users would share the client's sessions
            raise InvalidToken("the token does not name its subject")
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
        late, early = now - self.skew, now + self.skew
        problems = {
            "the token does not say when it expires": expires is None and self.requires_expiry,
            "the token has expired": expires is not None and expires <= late,
            "the token is not valid yet": begins is not None and begins > early,
            "the token was issued in the future": issued is not None and issued > early,
            "the token is not for this resource": not self._is_for(claims.get(self.audience_claim), resource),
            "the token is no access token": any(name in claims for name in _ID_TOKEN_CLAIMS)
            or any(claims.get(name) in _OTHER_TYPES for name in _TYPE_CLAIMS),
        }
        for problem, is_present in problems.items():
            if is_present:
                raise InvalidToken(problem, found)
        return found

    def _is_for(self, audience: object, resource: str) -> bool:
        """Return True if an audience, a text or a list, has one of the accepted values exactly."""
        # a resource without a path is the same URL with and without a slash
        resources = (resource, f"{resource}/") if resource.count("/") == 2 else (resource,)
        named: list[object] = audience if is_array(audience) else [audience]
        return any(isinstance(one, str) and one in (self.audience or resources) for one in named)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MAX_TIME < value < _MAX_TIME:
        raise InvalidToken(f"the {name} of the token is not a time")
    return value


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes: `scope` of RFC 9068, or `scp`, a text (Entra) or a list (Okta)."""
    value = claims.get("scope", claims.get("scp"))
    named: list[Any] = value if is_array(value) else value.split(" ") if isinstance(value, str) else []
    return [one for one in named[:_MAX_SCOPES] if isinstance(one, str) and one]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
