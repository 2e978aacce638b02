"""OAuth resource server: accept requests with a valid token, and challenge all other requests.

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

from mcp_bindgen.http.server.access import HttpRequest, Scopes
from mcp_bindgen.http.server.errors import HttpError, unavailable
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import harmless, log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.access import Identity, InsufficientScope, Operation, report_refusal
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

from .. import challenges
from ..fetch import is_loopback
from ..metadata import canonical, target_uri
from .policy import Policy, check_scopes, is_scope
from .verifier import InvalidToken, NonceWanted, TokenVerifier, VerifierUnavailable

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from .dpop import Nonces, ProofVerifier, ReplayCache

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Path of the metadata of a resource, before the path of the resource (RFC 9728, section 3.1)."""

_CREDENTIALS = re.compile(rb"(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_SCHEME = re.compile(rb"(?:bearer|dpop)(?: |$)", re.IGNORECASE)
_MAX_TOKEN_BYTES = 16 * 1024
_MAX_CACHED_TOKENS = 10_000
_MAX_CACHED_TOKEN_BYTES = 4096  # the claims of longer tokens would take too much memory
_UNAVAILABLE = "tokens cannot be verified at the moment"
_BEARER, _DPOP = "Bearer", "DPoP"

Header = tuple[bytes, bytes]


class ResourceServer:
    """Access policy of an MCP endpoint: `HttpApp(..., auth=ResourceServer("https://example.org/mcp", verifier))`.

    A request without a valid token gets 401 and the URL of the metadata, which names the issuers. A request that lacks
    a scope gets 403 and all scopes of the operation. The token is checked before the body is read, the scopes after.

    Args:
        resource: URL of the endpoint for clients. Addresses in requests are never used instead.
        verifiers: Verifiers of tokens, called in this order: `JwtVerifier`, `Introspection`, `StaticTokens`, your own.
        scopes: Method -> required scopes; (method, name of a tool or prompt or URI of a resource) -> further scopes;
            `*` -> scopes of every request.
        implies: Scope -> narrower scopes that it implies.
        basic_scopes: Scopes for a first request, named in challenges and metadata. By default, the scopes of whole
            methods, or all scopes if there are none.
        dpop: Whether tokens bound to a key are accepted, or required; `None`: they are refused.
        nonces: Nonces that proofs of possession must have, if any.
        replay: Cache of used proofs; by default in this process. Several processes need a shared cache.
        api_key_header: Header that may carry a token in place of `Authorization`, such as `X-API-Key`;
            handlers do not get the header.
        name: Name of the resource for users.
        documentation: URL of a page for developers.
        clock: Returns the time in seconds since 1970.

    Attributes:
        resource: URL of the endpoint.
        metadata_path: Path of the metadata; `None` if no verifier has an issuer.

    Raises:
        ValueError: The resource is no valid URL, there is no verifier, or a text is no scope.
        NotInstalled: `dpop` needs the extra `auth`.
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
            raise ValueError("a resource server needs a verifier of tokens")
        self.resource = resource
        self._verifiers = verifiers
        self._policy = Policy(scopes or {}, implies or {})
        self._basic = list(self._policy.general if basic_scopes is None else check_scopes(basic_scopes))
        self._dpop, self._nonces = dpop, nonces
        self._proofs: ProofVerifier | None = None
        self._key_header = None if api_key_header is None else api_key_header.lower().encode("ascii")
        self._has_cached_headers = dpop != "required" and api_key_header is None
        self._described = {"resource_name": name, "resource_documentation": documentation}
        self._clock = clock
        self._cache: OrderedDict[bytes, Identity] = OrderedDict()
        issuers = [issuer for one in verifiers for issuer in getattr(one, "issuers", ())]
        self._issuers = list(dict.fromkeys(issuers))
        self.metadata_path: str | None = f"{WELL_KNOWN}{path}" if self._issuers else None
        self._schemes: dict[str, dict[str, str]] = {} if dpop == "required" else {_BEARER: {}}
        if dpop is not None:
            require("ResourceServer(dpop=...)", "joserfc", extra="auth")
            from .dpop import ALGORITHMS, ProofVerifier

            self._proofs = ProofVerifier(nonces, clock=clock, replay=replay)
            self._schemes[_DPOP] = {"algs": " ".join(ALGORITHMS)}
        self._first_challenge = self._challenge()

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
            document["dpop_signing_alg_values_supported"] = self._schemes[_DPOP]["algs"].split()
            document["dpop_bound_access_tokens_required"] = self._dpop == "required"
        return to_json(document)

    def routes(self) -> list[Route]:
        """Return the routes of the metadata for an application of Starlette or FastAPI.

        An endpoint that is mounted below a path does not get the requests for its metadata, which is at the root.
        """
        from starlette.middleware import Middleware
        from starlette.middleware.cors import CORSMiddleware
        from starlette.responses import Response
        from starlette.routing import Route

        async def metadata(request: Request) -> Response:
            return Response(self.metadata(), media_type="application/json", headers={"cache-control": "max-age=300"})

        cors = Middleware(CORSMiddleware, allow_origins="*", allow_headers="*")
        path, methods = self.metadata_path, ("GET", "OPTIONS")
        return [] if path is None else [Route(path, metadata, methods=methods, middleware=[cors])]

    # --- scopes -----------------------------------------------------------------------------------------------

    def needed(self, operation: Operation) -> frozenset[str]:
        """Return the scopes that an operation requires."""
        return self._policy.needed(operation)

    def challenge(self, missing: InsufficientScope) -> list[Header]:
        """Return the headers that name the required scopes to a client, without texts that are no scopes."""
        scopes = [one for one in missing.scopes if is_scope(one)]
        return self._challenge("insufficient_scope", "the token lacks a scope", scopes)

    # --- tokens -----------------------------------------------------------------------------------------------

    async def authenticate(self, request: HttpRequest) -> Identity:
        """Return the identity in the token of a request.

        Raises:
            HttpError: 401 without a valid token; 400 for several or malformed tokens; 503 if the token cannot be
                verified now.
        """
        value = request.headers.get(b"authorization")
        if value is not None and self._has_cached_headers and not request.scope.get("query_string"):
            known = self._cache.get(hashlib.sha256(value).digest())
            if known is not None and self._clock() < (known.cache_until or 0) and "cnf" not in known.claims:
                return known
        scheme, token = self._presented(request)
        try:
            identity = await self._identify(token)
            await self._check_possession(request, scheme, token, identity)
        except InvalidToken as error:
            headers = self._challenge(error.code, str(error))
            if self._nonces is not None and isinstance(error, NonceWanted):
                headers.append((b"dpop-nonce", self._nonces.current().encode()))
            else:
                self._report(request, str(error), error.identity)
            raise HttpError(401, str(error), *headers) from None
        except Exception as error:
            if isinstance(error, VerifierUnavailable | StoreUnavailable):
                self._report(request, str(error))
            else:  # its text may have the token
                shown = RuntimeError(f"{type(error).__name__}: {error}".replace(token, "..."))
                log.error("a token could not be verified", exc_info=shown.with_traceback(error.__traceback__))
            raise unavailable(_UNAVAILABLE) from None
        return identity

    def _presented(self, request: HttpRequest) -> tuple[str, str]:
        """Return the scheme and the token of a request; raise `HttpError`."""
        query: bytes = request.scope.get("query_string", b"")
        if query and "access_token" in parse_qs(query.decode("latin-1"), keep_blank_values=True):
            raise self._malformed(request, "a token does not belong into the address")
        value = request.headers.get(b"authorization")
        key = None if self._key_header is None else request.headers.pop(self._key_header, None)  # no handler gets it
        if key is not None:
            if value is not None:
                raise self._malformed(request, "there are two tokens")
            value = b"Bearer " + key
        found = None if value is None else _CREDENTIALS.fullmatch(value.strip(b" \t"))
        if found is not None:
            return found[1].decode().lower(), found[2].decode()
        if value is not None and _SCHEME.match(value) is not None:
            raise self._malformed(request, "the header Authorization does not hold one token")
        reason, level = ("no token", logging.INFO) if value is None else ("unknown token scheme", logging.WARNING)
        self._report(request, reason, level=level)
        raise HttpError(401, "a token is needed", *self._first_challenge)

    async def _identify(self, token: str) -> Identity:
        """Return the identity of a token, with all scopes that its scopes imply; raise the errors of verifiers."""
        if len(token) > _MAX_TOKEN_BYTES:
            raise InvalidToken("the token is too long")
        digest = hashlib.sha256(b"Bearer " + token.encode()).digest()  # the usual header
        known = self._cache.get(digest)
        if known is not None and known.cache_until is not None:
            if self._clock() < known.cache_until:
                return known
            del self._cache[digest]
        for verifier in self._verifiers:
            found = await verifier.verify(token, self.resource)
            if found is not None:
                granted = self._policy.granted(found.scopes)
                found = found if granted == found.scopes else replace(found, scopes=granted)
                if found.cache_until is not None and len(token) <= _MAX_CACHED_TOKEN_BYTES:
                    self._cache[digest] = found
                    if len(self._cache) > _MAX_CACHED_TOKENS:
                        self._cache.popitem(last=False)
                return found
        raise InvalidToken("the token is unknown here")

    async def _check_possession(self, request: HttpRequest, scheme: str, token: str, identity: Identity) -> None:
        """Check that a token was sent with a proof if it is bound to a key, and without one otherwise.

        Raises:
            InvalidToken: The scheme does not fit the token.
            InvalidProof: The proof is not for this request.
        """
        bound = identity.claims.get("cnf")
        if bound is None and scheme == "bearer" and self._dpop != "required":
            return
        thumbprint: object = bound.get("jkt") if is_object(bound) and set(bound) == {"jkt"} else None
        if bound is None:
            raise InvalidToken("the token is not bound to a key", identity)
        if not isinstance(thumbprint, str) or not thumbprint.isascii() or self._proofs is None:
            raise InvalidToken("the token is bound to a key in a way that is not accepted here", identity)
        if scheme == "bearer":
            raise InvalidToken("the token must be sent with a proof of its key", identity)
        urls = (target_uri(self.resource), target_uri(f"{self._origin}{request.scope['path']}"))
        proof = request.headers.get(b"dpop", b"")
        await self._proofs.verify(proof, request.scope["method"], urls, token, thumbprint)

    # --- refusals ---------------------------------------------------------------------------------------------

    def _challenge(
        self, error: str | None = None, description: str = "", scopes: Sequence[str] | None = None
    ) -> list[Header]:
        """Return the headers of a challenge, one for each accepted scheme; errors of proofs are for DPoP only."""
        common: dict[str, str] = {}
        if self.metadata_path is not None:
            common["resource_metadata"] = f"{self._origin}{self.metadata_path}"
        named = self._basic if scopes is None else scopes
        if named:
            common["scope"] = " ".join(named)
        details: dict[str, str] = {}
        if error is not None:  # other verifiers may describe errors in any language
            details = {"error": error, "error_description": harmless(description).encode("ascii", "replace").decode()}
        headers: list[Header] = []
        for scheme, own in self._schemes.items():
            is_other = scheme == _BEARER and "dpop" in (error or "")
            value = challenges.write(scheme, common | own | ({} if is_other else details))
            headers.append((b"www-authenticate", value.encode()))
        return headers

    def _malformed(self, request: HttpRequest, reason: str) -> HttpError:
        self._report(request, reason)
        return HttpError(400, reason, *self._challenge("invalid_request", reason))

    def _report(
        self, request: HttpRequest, reason: str, identity: Identity | None = None, level: int = logging.WARNING
    ) -> None:
        path = request.scope["path"].partition("?")[0]  # the path may hold an escaped query
        report_refusal(identity, reason, f"{request.scope['method']} {path}", level)


def _checked(resource: str) -> tuple[str, str]:
    """Return the origin and the path of a resource; raise `ValueError` if it is no valid URL."""
    parts = urlsplit(resource)
    host = parts.hostname or ""
    path = "" if parts.path == "/" else parts.path
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"not the URL of a resource, like https://example.org/mcp: {resource}")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"a resource must have an https URL, unless it is on this machine: {resource}")
    if resource != canonical(resource):
        raise ValueError(f"clients write this resource as {canonical(resource)}, not as {resource}")
    return f"{parts.scheme}://{parts.netloc}", path
