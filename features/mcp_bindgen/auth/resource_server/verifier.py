"""Define what verifies tokens, and the simplest that does: a table of them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Protocol

from mcp_bindgen.runtime.protocol.access import Identity

_SHORTEST = 16  # characters of a token that nobody guesses


class InvalidToken(Exception):
    """A token is not good here.

    Args:
        reason: Why, in words that its sender may read.
        identity: Whose it is, where its issuer says so all the same.
    """

    def __init__(self, reason: str, identity: Identity | None = None) -> None:
        super().__init__(reason)
        self.identity = identity


class VerifierUnavailable(Exception):
    """Nobody can tell at the moment whether a token is good: its issuer does not answer."""


class TokenVerifier(Protocol):
    """Verifies tokens of one kind. Yours can be anything that looks them up.

    It may have `issuers`, the authorization servers that clients can get tokens from.
    """

    async def verify(self, token: str, resource: str) -> Identity | None:
        """Return whose token it is; `None` if it is not of a kind that this verifies, so that the next one is asked.

        Args:
            token: What the client sent.
            resource: The server that it was sent to: the audience that the token must have.

        Raises:
            InvalidToken: It is not good, whatever others say.
            VerifierUnavailable: That cannot be told at the moment.
        """
        ...


class StaticTokens:
    """API keys and other tokens that do not change: `StaticTokens({os.environ["KEY"]: "alice"})`.

    Which one a token equals, if any, does not show in the time that it takes. Only digests are kept.

    Args:
        tokens: Token -> whose it is: an `Identity`, or the name of its subject, which then has no scopes.

    Raises:
        ValueError: A token is so short that it can be guessed.
    """

    def __init__(self, tokens: Mapping[str, Identity | str]) -> None:
        if any(len(token) < _SHORTEST for token in tokens):
            raise ValueError(f"a token that is to be a secret has at least {_SHORTEST} characters")
        self._known = [
            (_digest(token), Identity(subject=owner) if isinstance(owner, str) else owner)
            for token, owner in tokens.items()
        ]

    async def verify(self, token: str, resource: str) -> Identity | None:
        """Return whose token it is, if it is one of these."""
        digest = _digest(token)
        found: Identity | None = None
        for known, identity in self._known:
            if hmac.compare_digest(known, digest):
                found = identity
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
