"""Be an OAuth resource server: take requests with a valid token, and tell the others how to get one.

MCP, "Authorization"; RFC 6750 (bearer tokens), RFC 9728 (metadata of protected resources), RFC 9449 (DPoP).
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic_core import to_json

from mcp_bindgen.runtime.logs import harmless, log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.access import (
    AccessDenied,
    HttpRequest,
    Identity,
    InsufficientScope,
    Operation,
    Scopes,
    report_refusal,
)

from .. import challenges
from ..dpop import target
from ..fetch import is_loopback
from ..metadata import canonical
from .dpop import ALGORITHMS, InvalidProof, Nonces, NonceWanted, ProofVerifier
from .policy import Policy, check_scopes, is_scope
from .replay import ReplayCache
from .verifier import InvalidToken, TokenVerifier, VerifierUnavailable

if TYPE_CHECKING:
    from starlette.routing import Route

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Where the metadata of a resource is, before its path (RFC 9728, section 3.1)."""

_CREDENTIALS = re.compile(rb"(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_SCHEME = re.compile(rb"(?:bearer|dpop)(?: |$)", re.IGNORECASE)
_LONGEST = 16 * 1024  # bytes of a token
_MOST_KEPT = 10_000  # tokens that are known to be good
_LONGEST_KEPT = 4096  # bytes of one of them: the claims of longer ones would take too much memory
_UNAVAILABLE = "tokens cannot be verified at the moment"
_BEARER, _DPOP = "Bearer", "DPoP"

Header = tuple[bytes, bytes]


class ResourceServer:
    """The gate of a protected MCP endpoint: `HttpApp(..., auth=ResourceServer("https://example.org/mcp", verifier))`.

    Who has no good token gets 401 and is told where the metadata is, which names the issuers; who lacks a scope gets
    403 and is told all scopes that the operation needs. The token is checked before the body is read, the scopes after.

    Args:
        resource: The URL of the endpoint, as clients know it. Nothing that a request says of its own address counts.
        verifiers: What verifies tokens, asked in this order: `JwtVerifier`, `Introspection`, `StaticTokens`, your own.
        scopes: Method -> the scopes that it needs; (method, name of a tool or prompt or URI of a resource) -> those
            that it needs beside; `*` -> those of every request.
        implies: Scope -> narrower ones that it implies.
        basic_scopes: What a client should ask for first: challenges and metadata name these. By default, the scopes of
            whole methods, or all where there are none.
        dpop: Whether tokens may be bound to a key of their client, or must be; `None`: those that are get refused.
        nonces: The nonces that proofs of possession must have, if they must.
        replay: Remembers which proofs were used; by default in this process. Several processes need a shared one.
        api_key_header: A header that may carry a token in place of `Authorization`, such as `X-API-Key`.
        name: The name of the resource, for people.
        documentation: The URL of a page about it, for developers.
        clock: Tells the time, in seconds since 1970.

    Attributes:
        resource: The same.
        metadata_path: Where the metadata is served; `None` where no verifier has an issuer.

    Raises:
        ValueError: The resource is no URL for one, there is no verifier, or something is no scope.
    """

    def __init__(
        self,
        resource: str,
        *verifiers: TokenVerifier,
        scopes: Scopes | None = None,
        implies: Mapping[str, Collection[str]] | None = None,
        basic_scopes: Collection[str] | None = None,
        dpop: Literal["optional", "required"] | None = None,
        nonces: Nonces | None = None,
        replay: ReplayCache | None = None,
        api_key_header: str | None = None,
        name: str | None = None,
        documentation: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._origin, path = _checked(resource)
        if not verifiers:
            raise ValueError("a resource server needs something that verifies tokens")
        self.resource = resource
        self._verifiers = verifiers
        self._policy = Policy(scopes or {}, implies or {})
        self._basic = list(self._policy.general if basic_scopes is None else check_scopes(basic_scopes))
        self._dpop = dpop
        self._nonces = nonces
        self._proofs = ProofVerifier(nonces, clock=clock, replay=replay)
        self._key_header = None if api_key_header is None else api_key_header.lower().encode("ascii")
        self._takes_bearer = dpop != "required" and api_key_header is None
        self._described = {"resource_name": name, "resource_documentation": documentation}
        self._clock = clock
        self._kept: OrderedDict[bytes, Identity] = OrderedDict()
        issuers = [issuer for one in verifiers for issuer in getattr(one, "issuers", ())]
        self._issuers = list(dict.fromkeys(issuers))
        self.metadata_path: str | None = f"{WELL_KNOWN}{path}" if self._issuers else None
        self._nobody = self._challenge()

    # --- metadata ---------------------------------------------------------------------------------------------

    def metadata(self) -> bytes:
        """Return the metadata of the protected resource, as JSON text (RFC 9728, section 2)."""
        document: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": self._issuers,
            "bearer_methods_supported": ["header"],
            **{key: value for key, value in self._described.items() if value is not None},
        }
        if self._basic:
            document["scopes_supported"] = self._basic
        if self._dpop is not None:
            document["dpop_signing_alg_values_supported"] = list(ALGORITHMS)
            document["dpop_bound_access_tokens_required"] = self._dpop == "required"
        return to_json(document)

    def routes(self) -> list[Route]:
        """Return the routes of the metadata for an application of Starlette or FastAPI.

        An endpoint that is mounted below a path does not get the requests for its metadata, which is at the root.
        """
        from starlette.responses import Response
        from starlette.routing import Route

        async def tell(request: Any) -> Response:
            return Response(self.metadata(), media_type="application/json", headers={"cache-control": "max-age=300"})

        return [] if self.metadata_path is None else [Route(self.metadata_path, tell)]

    # --- scopes -----------------------------------------------------------------------------------------------

    def needed(self, operation: Operation) -> frozenset[str]:
        """Return the scopes that an operation needs."""
        return self._policy.needed(operation)

    def challenge(self, missing: InsufficientScope) -> AccessDenied:
        """Make the refusal that tells a client which scopes to come back with; what can be none is not named there."""
        scopes = [one for one in missing.scopes if is_scope(one)]
        headers = self._challenge("insufficient_scope", "the token lacks a scope", scopes)
        return AccessDenied(403, missing.message, *headers)

    # --- tokens -----------------------------------------------------------------------------------------------

    async def authenticate(self, request: HttpRequest) -> Identity:
        """Return whose token came with a request.

        Raises:
            AccessDenied: With 401, there is none, or it is not good; with 400, there are several, or what is there is
                no token; with 503, nobody can tell at the moment.
        """
        value = request.headers.get(b"authorization")
        if value is not None and self._takes_bearer and not request.scope.get("query_string"):
            known = self._kept.get(hashlib.sha256(value).digest())
            if known is not None and self._clock() < (known.cache_until or 0) and "cnf" not in known.claims:
                return known
        scheme, token = self._presented(request)
        try:
            identity = await self._identify(token)
            await self._check_possession(request, scheme, token, identity)
        except InvalidToken as error:
            self._report(request, str(error), error.identity)
            headers = self._challenge("invalid_token", str(error))
            raise AccessDenied(401, str(error), *headers) from None
        except NonceWanted as error:
            assert self._nonces is not None
            headers = self._challenge("use_dpop_nonce", str(error), error_for=_DPOP)
            nonce = (b"dpop-nonce", self._nonces.current().encode())
            raise AccessDenied(401, str(error), *headers, nonce) from None
        except InvalidProof as error:
            self._report(request, str(error))
            headers = self._challenge("invalid_dpop_proof", str(error), error_for=_DPOP)
            raise AccessDenied(401, str(error), *headers) from None
        except VerifierUnavailable as error:
            self._report(request, str(error))
            raise AccessDenied(503, _UNAVAILABLE, (b"retry-after", b"5")) from None
        except Exception:
            log.exception("a token could not be verified")
            raise AccessDenied(503, _UNAVAILABLE, (b"retry-after", b"5")) from None
        return identity

    def _presented(self, request: HttpRequest) -> tuple[str, str]:
        """Return the scheme and the token of a request; raises `AccessDenied`."""
        query: bytes = request.scope.get("query_string", b"")
        if query and "access_token" in parse_qs(query.decode("latin-1"), keep_blank_values=True):
            request.scope["query_string"] = b""  # access logs are written later, and show it
            raise self._malformed(request, "a token does not belong into the address")
        value = request.headers.get(b"authorization")
        key = None if self._key_header is None else request.headers.get(self._key_header)
        if key is not None:
            if value is not None:
                raise self._malformed(request, "there are two tokens")
            value = b"Bearer " + key
        if value is None:
            self._report(request, "no token", level=logging.INFO)
            raise AccessDenied(401, "a token is needed", *self._nobody)
        found = _CREDENTIALS.fullmatch(value.strip(b" \t"))
        if found is None:
            if _SCHEME.match(value) is not None:
                raise self._malformed(request, "the header Authorization does not hold one token")
            self._report(request, "no token of a scheme that is taken here")
            raise AccessDenied(401, "a token is needed", *self._nobody)
        return found[1].decode().lower(), found[2].decode()

    async def _identify(self, token: str) -> Identity:
        """Return whose token it is, with the scopes that its own imply; raises what verifiers raise."""
        if len(token) > _LONGEST:
            raise InvalidToken("the token is too long")
        digest = hashlib.sha256(b"Bearer " + token.encode()).digest()  # as nearly all headers have it
        known = self._kept.get(digest)
        if known is not None and known.cache_until is not None:
            if self._clock() < known.cache_until:
                return known
            del self._kept[digest]
        for verifier in self._verifiers:
            found = await verifier.verify(token, self.resource)
            if found is not None:
                granted = self._policy.granted(found.scopes)
                found = found if granted == found.scopes else replace(found, scopes=granted)
                if found.cache_until is not None and len(token) <= _LONGEST_KEPT:
                    self._kept[digest] = found
                    if len(self._kept) > _MOST_KEPT:
                        self._kept.popitem(last=False)
                return found
        raise InvalidToken("nobody knows the token here")

    async def _check_possession(self, request: HttpRequest, scheme: str, token: str, identity: Identity) -> None:
        """Check that a token came in the way that its issuer bound it to.

        Raises:
            InvalidToken: It came in another one.
            InvalidProof: The proof of possession that came along is not one for this request.
        """
        bound = identity.claims.get("cnf")
        if bound is None and scheme == "bearer" and self._dpop != "required":
            return
        thumbprint: Any = bound.get("jkt") if is_object(bound) and set(bound) == {"jkt"} else None
        if bound is not None and (not isinstance(thumbprint, str) or not thumbprint.isascii() or self._dpop is None):
            raise InvalidToken("the token is bound to a key in a way that is not taken here", identity)
        if scheme == "bearer":
            reason = "must be sent with a proof of its key" if bound is not None else "is not bound to a key"
            raise InvalidToken(f"the token {reason}", identity)
        if bound is None or self._dpop is None:
            raise InvalidToken("the token is not bound to a key", identity)
        urls = (target(self.resource), target(f"{self._origin}{request.scope['path']}"))
        proof = request.headers.get(b"dpop", b"")
        await self._proofs.verify(proof, request.scope["method"], urls, token, thumbprint)

    # --- refusals ---------------------------------------------------------------------------------------------

    def _challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        scopes: Sequence[str] | None = None,
        *,
        error_for: str | None = None,
    ) -> list[Header]:
        """Return the headers of a challenge, one for each scheme that is taken."""
        common: dict[str, str] = {}
        if self.metadata_path is not None:
            common["resource_metadata"] = f"{self._origin}{self.metadata_path}"
        named = self._basic if scopes is None else scopes
        if named:
            common["scope"] = " ".join(named)
        said: dict[str, str] = {}
        if error is not None and description is not None:
            words = harmless(description).encode("ascii", "replace").decode()  # those of other verifiers may be any
            said = {"error": error, "error_description": words}
        schemes = {_BEARER: {}, _DPOP: {"algs": " ".join(ALGORITHMS)}}
        if self._dpop is None:
            del schemes[_DPOP]
        elif self._dpop == "required":
            del schemes[_BEARER]
        return [
            (
                b"www-authenticate",
                challenges.write(scheme, common | own | (said if error_for in (None, scheme) else {})).encode(),
            )
            for scheme, own in schemes.items()
        ]

    def _malformed(self, request: HttpRequest, reason: str) -> AccessDenied:
        self._report(request, reason)
        return AccessDenied(400, reason, *self._challenge("invalid_request", reason))

    def _report(
        self, request: HttpRequest, reason: str, identity: Identity | None = None, level: int = logging.WARNING
    ) -> None:
        path = request.scope["path"].partition("?")[0]  # an escaped query is none
        report_refusal(identity, reason, f"{request.scope['method']} {path}", level)


def _checked(resource: str) -> tuple[str, str]:
    """Return the origin and the path of a resource; raise `ValueError` if it is no URL for one."""
    parts = urlsplit(resource)
    host = parts.hostname or ""
    path = "" if parts.path == "/" else parts.path
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"not the URL of a resource, like https://example.org/mcp: {resource}")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"a resource is reached by https, unless it is on this machine: {resource}")
    if resource != canonical(resource):
        raise ValueError(f"clients write this resource as {canonical(resource)}, not as {resource}")
    return f"{parts.scheme}://{parts.netloc}", path
