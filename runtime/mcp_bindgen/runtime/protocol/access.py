"""Origin of messages: identities, scopes and limits of what a client follows (MCP, "Authorization")."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from pydantic_core import to_json

from ..logs import audit
from ..model.base import optional
from ..model.json_types import is_object
from .errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError

Operation: TypeAlias = "tuple[str, str | None]"
"""A method and its target: the name of a tool or prompt, the URI of a resource; `None` for neither.

A URI is in its canonical form; a URI that was sent in another form makes two operations.
"""

SKEW = 60.0
"""Seconds by which the clock of an issuer may differ from ours."""


_LACKING = "insufficient_scope"


class InsufficientScope(ProtocolError):
    """The token of a request lacks a scope. Over HTTP it becomes a 403, or else an error with the code -32600.

    Args:
        scopes: All scopes that the operation needs.

    Attributes:
        scopes: The same.
    """

    def __init__(self, scopes: Collection[str]) -> None:
        self.scopes: tuple[str, ...] = tuple(scopes)
        scope = " ".join(self.scopes)
        data = {"error": _LACKING, "scope": scope}
        super().__init__(INVALID_REQUEST, f"Insufficient scope: this needs {scope}", data)


def lacks_scope(error: ProtocolError) -> bool:
    """Return whether a server has refused a request because its token lacks a scope."""
    return is_object(error.data) and error.data.get("error") == _LACKING


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Identity of the sender of a request, from a verified token. It never holds the token.

    Attributes:
        issuer: Issuer of the token; empty without one, as for the keys of `StaticTokens`.
        subject: The user, or the client that acts for itself.
        client: OAuth client of the token, if known.
        scopes: Scopes of the token, with all that they imply.
        claims: Claims of the token; empty without any.
        expires: Expiry of the token, in seconds since 1970; `None` for never, or not known.
        cache_until: Cache expiry of the verification, in seconds since 1970; `None` to verify each request.
    """

    issuer: str = ""
    subject: str
    client: str | None = None
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    expires: float | None = field(default=None, compare=False)
    cache_until: float | None = field(default=None, repr=False, compare=False)

    @cached_property
    def principal(self) -> str:
        """Issuer, subject and client as one text: the key of the owner of sessions, for any of its tokens."""
        return to_json([self.issuer, self.subject, self.client]).decode()

    @property
    def session_expires_at(self) -> float | None:
        """End of streams that were opened with the token, in seconds since 1970; `None` for never."""
        return None if self.expires is None else self.expires + SKEW

    def has(self, *scopes: str) -> bool:
        """Return True if the token has all of these scopes."""
        return self.scopes.issuperset(scopes)

    def require(self, *scopes: str) -> None:
        """Require scopes in a handler, before it changes anything: its client may call again with more scopes.

        Raises:
            InsufficientScope: The token lacks a scope. Do not catch it: a stateless request gets 403 and a challenge,
                unless its response is a stream already; any other request gets an error that names the scopes.
        """
        if not self.has(*scopes):
            report_refusal(self, "insufficient scope", f"a handler that needs {' '.join(scopes)}")
            raise InsufficientScope(scopes)


def report_refusal(identity: Identity | None, reason: str, operation: str, level: int = 30) -> None:
    """Write a refusal to the audit log; the token is never part of it.

    Args:
        identity: Identity of the sender, if known.
        reason: Why.
        operation: Description of the operation.
        level: Level of the record; the default is warning.
    """
    who, fields = "somebody", {"reason": reason, "operation": operation}
    if identity is not None:
        who = f"issuer={identity.issuer!r} subject={identity.subject!r} client={identity.client!r}"
        fields |= {"issuer": identity.issuer, "subject": identity.subject, "client": identity.client or ""}
    audit.log(level, "refused: %s; %s; %s", reason, operation, who, extra={"fields": fields})


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Origin of a message, as far as its transport knows it.

    Attributes:
        identity: Verified token of the message; `None` where messages carry no tokens.
        principal: Key of the user that the message counts for; `None` if unknown.
        headers: HTTP headers, names in lower case; credentials (`Authorization`, `DPoP`, `Cookie`, ...) are left out.
        address: IP address of the client; `None` if unknown.
        network: `pipe` or `tcp`; `None` if neither.
    """

    identity: Identity | None = None
    principal: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    address: str | None = None
    network: str | None = None


UNKNOWN_ORIGIN = RequestOrigin()
"""Origin of messages whose transport knows nothing about its peer."""


MAX_FOLLOWED_URIS = 1000
"""Resources that a client follows with one session or one subscription."""

MAX_FOLLOWED_BYTES = 256 * 1024
"""Bytes of their URIs."""


def followed_by(wanted: object) -> list[str]:
    """Return the URIs of the resources that a typed filter names; raise `ProtocolError` as `check_followed` does."""
    uris: list[str] = optional(wanted, "resource_subscriptions") or []
    check_followed(uris)
    return uris


def check_followed(uris: Collection[str]) -> None:
    """Check how many resources a client follows, with one session or one subscription.

    Raises:
        ProtocolError: There are too many, or their URIs are too long (-32602).
    """
    if len(uris) > MAX_FOLLOWED_URIS:
        found = f"{len(uris)} resources"
    elif sum(len(uri.encode("utf-8", "surrogatepass")) for uri in uris) > MAX_FOLLOWED_BYTES:
        found = f"URIs of more than {MAX_FOLLOWED_BYTES} bytes"
    else:
        return
    advice = f"subscribe to at most {MAX_FOLLOWED_URIS} resources, with URIs of at most {MAX_FOLLOWED_BYTES} bytes"
    raise ProtocolError(INVALID_PARAMS, f"too many subscriptions: {found}; {advice}")
