"""Ask a user for access, and judge what comes back (OAuth 2.1, section 4.1; RFC 7636, RFC 8707, RFC 9207)."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..fetch import is_loopback
from ..metadata import ServerMetadata

_PLAIN = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@&=+,%]+")
_ONCE = ("code", "state", "iss", "error", "error_description")
_LONGEST = 16 * 1024


@dataclass(frozen=True)
class AuthorizationRequest:
    """One request for access, with all that its response is held against.

    Attributes:
        server: The authorization server whose metadata was validated; its issuer is what the response must name.
        redirect_uri: Where the user comes back to.
        url: What the user visits.
        state: Ties the response to this request.
        verifier: Ties the code to it.
    """

    server: ServerMetadata
    redirect_uri: str
    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)

    @classmethod
    def new(
        cls,
        server: ServerMetadata,
        client_id: str,
        redirect_uri: str,
        *,
        resource: str | None,
        scopes: Sequence[str],
        assume_pkce: bool = False,
        key: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> AuthorizationRequest:
        """Make a request.

        Args:
            server: Who is asked.
            client_id: Who asks.
            redirect_uri: Where the user comes back to.
            resource: What access is wanted to; `None` only for servers that refuse to be told.
            scopes: Which scopes are wanted.
            assume_pkce: Whether to go on although the server does not say that it knows PKCE.
            key: The thumbprint of the key that tokens will be bound to, if they are.
            more: Further parameters; they replace none.

        Raises:
            AuthorizationError: The server cannot be asked safely.
        """
        check_redirect(redirect_uri)
        endpoint = server.authorization_endpoint
        if endpoint is None:
            raise AuthorizationError(f"{server.issuer} has no authorization endpoint, so users cannot log in there")
        check_visitable(endpoint)
        methods = server.challenge_methods
        unsaid = methods is None and (server.is_legacy or assume_pkce)
        if not unsaid and "S256" not in (methods or ()):
            raise AuthorizationError(
                f"{server.issuer} does not say that it protects codes by PKCE with S256, so a login is not safe there; "
                "if you know that it does, name that departure for this issuer"
            )
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode("ascii")).digest()
        query = {
            **(more or {}),
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        if resource is not None:
            query["resource"] = resource
        if scopes:
            query["scope"] = " ".join(scopes)
        if "offline_access" in scopes and "prompt" not in query:
            query["prompt"] = "consent"
        if key is not None:
            query["dpop_jkt"] = key
        taken = {name for name, _ in parse_qsl(urlsplit(endpoint).query, keep_blank_values=True)}
        if taken & query.keys():
            raise AuthorizationError(f"{server.issuer} sets parameters of the request itself, which is not safe")
        url = f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"
        return cls(server, redirect_uri, url, state, verifier)

    def is_ours(self, address: str) -> bool:
        """Tell whether an address that a user came back to belongs to this request."""
        states = [value for name, value in _query(address) if name == "state"]
        same = len(states) == 1 and compare_digest(states[0].encode(), self.state.encode())
        return same and address.partition("?")[0] == self.redirect_uri.partition("?")[0]

    def code(self, address: str) -> str:
        """Return the code in the address that the user came back to.

        Raises:
            AuthorizationError: It is not the response to this request, or says no. Of a response that is not of the
                server that was asked, nothing is shown.
        """
        if not self.is_ours(address):
            raise AuthorizationError("the login did not come back as the answer to our request; nothing was sent")
        pairs = _query(address)
        found = dict(pairs)
        if any(sum(name == one for name, _ in pairs) > 1 for one in _ONCE):
            raise AuthorizationError("the answer to the login says something twice, so nobody can tell what holds")
        if ("iss" in found or self.server.sends_issuer) and found.get("iss") != self.server.issuer:
            raise AuthorizationError(
                f"the answer to the login is not of {self.server.issuer}, which was asked; nothing was sent"
            )
        if "error" in found:
            words = ": ".join(harmless(found[one])[:200] for one in ("error", "error_description") if found.get(one))
            raise AuthorizationError(f"{self.server.issuer} does not grant access: {words}")
        if not found.get("code"):
            raise AuthorizationError(f"{self.server.issuer} answered the login without a code")
        return found["code"]


def check_redirect(uri: str) -> None:
    """Check where users shall come back to.

    Raises:
        AuthorizationError: It is neither https nor this machine, or has a fragment.
    """
    parts = urlsplit(uri)
    local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not (local or (parts.scheme == "https" and parts.hostname)) or parts.fragment or "@" in parts.netloc:
        raise AuthorizationError("users can only come back to this machine or to an https URL")


def check_visitable(url: str) -> None:
    """Check an address that a user will be sent to: it is handed to programs that may take it for something else.

    Raises:
        AuthorizationError: It is no https URL (or http on this machine), or has characters that no such address needs.
    """
    try:
        parts = urlsplit(url)
        local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    except ValueError:
        raise AuthorizationError("the address for users to visit is no URL") from None
    if not (local or parts.scheme == "https") or not parts.hostname or "@" in parts.netloc:
        raise AuthorizationError("the address for users to visit is not an https URL")
    if _PLAIN.fullmatch(url) is None or len(url) > _LONGEST:
        raise AuthorizationError("the address for users to visit has characters that could be taken for a command")


def _query(address: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(urlsplit(address[:_LONGEST]).query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return []
