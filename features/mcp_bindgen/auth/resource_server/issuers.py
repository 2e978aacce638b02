"""Verification of the tokens of an issuer: by its keys (JSON Web Tokens), or by asking it (introspection).

RFC 7662, RFC 8725, RFC 9068.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack
from urllib.parse import urlsplit

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.access import SKEW, Identity

from ..challenges import basic_credentials
from ..fetch import Fetcher, FetchError, InternalAddress, is_loopback
from ..metadata import find_document, is_issuer
from .signatures import ALGORITHMS, BadSignature, IssuerKeys, check_header, parse_signed, public_keys, verify
from .verifier import ClaimRules, InvalidToken, VerifierUnavailable

ACCESS_TOKEN = "at+jwt"  # noqa: S105 - it is the name of a type
"""Type of access tokens, which no other token of an issuer has (RFC 9068, section 2.1)."""

CACHE_SECONDS = 300.0
"""Longest cache time of a verified token, so that tokens of a withdrawn key end with it."""

_MAX_REQUESTS = 64  # to the introspection endpoint at once
_MAX_REFUSED = 10_000  # cached refusals
_LINGER = 1.0  # seconds after which an answer is dropped that no request waits for


class IssuerOptions(TypedDict, total=False):
    """Options of the verifiers of an issuer's tokens.

    Attributes:
        audience: Accepted audiences, if the issuer does not name the resource; by default the resource.
        skew: Seconds by which clocks may differ.
        private: True if the issuer's host may have a private address, such as 10.1.2.3.
        verify: Certificates to trust; by default those of this machine.
        clock: Returns the time in seconds since 1970.
        ignore_final_slash: True if the issuer is the same with and without a final slash, in metadata and in tokens.
    """

    audience: str | Collection[str] | None
    skew: float
    private: bool
    verify: ssl.SSLContext | None
    clock: Callable[[], float]
    ignore_final_slash: bool


class _IssuerVerifier:
    """Base class of the verifiers of an issuer's tokens.

    Args:
        issuer: The issuer.
        url: URL of an endpoint of the issuer, if the operator names one.
        options: Options of the verifier.
        audience_claim: Claim with the audience.
        requires_expiry: True if tokens without `exp` are refused.
    """

    def __init__(
        self,
        issuer: str,
        url: str | None,
        options: IssuerOptions,
        audience_claim: str = "aud",
        requires_expiry: bool = True,
    ) -> None:
        audience = options.get("audience")
        audiences = (audience,) if isinstance(audience, str) else audience
        self.issuers: tuple[str, ...] = (issuer,)
        self._rules = ClaimRules(issuer, audiences, audience_claim, options.get("skew", SKEW), requires_expiry)
        self._clock = options.get("clock", time.time)
        self._ignores_slash = options.get("ignore_final_slash", False)
        hosts = [urlsplit(one).hostname or "" for one in (issuer, url) if one is not None]
        trusted = frozenset(hosts if options.get("private") else ())
        self._fetcher = Fetcher(trusted=trusted, loopback=is_loopback(hosts[0]), verify=options.get("verify"))
        try:
            self._fetcher.check(issuer)
        except FetchError as error:
            hint = ": pass private=True if that is meant" if isinstance(error, InternalAddress) else ""
            raise ValueError(f"the issuer cannot be used: {error}{hint}") from None

    def _is_issuer(self, named: object) -> bool:
        return is_issuer(named, self._rules.issuer, ignores_slash=self._ignores_slash)

    async def _discover(self, name: str) -> str:
        """Return an endpoint from the metadata of the issuer; raise `FetchError` if there is none."""
        document = await find_document(self._fetcher, self._rules.issuer, ignores_slash=self._ignores_slash)
        found = document.get(name)
        if not isinstance(found, str):
            raise FetchError(f"the metadata of the issuer has no {name}")
        return found


class JwtVerifier(_IssuerVerifier):
    """Verify signed JSON Web Tokens of an issuer.

    The checks: type and algorithm, against a list; signature, by a key that the issuer publishes; issuer and audience,
    exactly; `exp` and `nbf`; and that the token is no ID token.

    Args:
        issuer: The issuer, as in its metadata, character by character.
        audience_claim: Claim with the audience. `client_id` is for issuers that write no audience: then tokens of the
            clients in `audience` are accepted, whatever server they were issued for.
        keys: The JWK Set; by default it is fetched.
        jwks_uri: URL of the JWK Set; by default from the metadata of the issuer.
        types: Accepted types; an empty one stands for tokens without a type. Some issuers know only `JWT` and write it
            into ID tokens, too; tokens with claims of ID tokens are refused in any case.
        algorithms: Accepted algorithms; by default all with two keys.
        options: `audience`, `skew`, `private`, `verify` and `clock`: see `IssuerOptions`.

    Attributes:
        issuers: The issuer, for the metadata of the resource.

    Raises:
        ValueError: The issuer is no URL to fetch from, an algorithm is unknown, the clients that are the audience are
            not named, or the keys are no JWK Set.
    """

    def __init__(
        self,
        issuer: str,
        *,
        audience_claim: Literal["aud", "client_id"] = "aud",
        keys: Mapping[str, Any] | None = None,
        jwks_uri: str | None = None,
        types: Collection[str] = (ACCESS_TOKEN,),
        algorithms: Collection[str] = ALGORITHMS,
        **options: Unpack[IssuerOptions],
    ) -> None:
        unknown = set(algorithms) - set(ALGORITHMS)
        if unknown:
            raise ValueError(f"algorithms of signatures are {', '.join(ALGORITHMS)}; not {', '.join(sorted(unknown))}")
        if audience_claim != "aud" and options.get("audience") is None:
            raise ValueError("name the clients whose tokens are accepted: audience=[...]")
        if keys is not None:
            public_keys(keys)
        super().__init__(issuer, jwks_uri, options, audience_claim)
        self._types = tuple(name.lower().removeprefix("application/") for name in types)
        self._algorithms = frozenset(algorithms)
        self._jwks_uri, self._given = jwks_uri, keys
        self._keys = IssuerKeys(self._load, issuer)

    async def verify(self, token: str, resource: str) -> Identity | None:
        """See `TokenVerifier`."""
        signed = parse_signed(token.encode("latin-1"))
        if signed is None or not self._is_issuer(signed.payload.get("iss")):
            return None
        algorithm, id_ = signed.header.get("alg"), signed.header.get("kid")
        try:
            check_header(signed.header, self._types)
            if not isinstance(algorithm, str) or algorithm not in self._algorithms:
                raise BadSignature("is signed with an algorithm that is not accepted here")
            keys = await self._keys.find(id_, algorithm) if isinstance(id_, str | None) else []
            if not keys:
                raise BadSignature("is signed with a key that its issuer does not publish")
            verify(signed, *(one.key for one in keys))
        except BadSignature as error:
            raise InvalidToken(f"the token {error}") from None
        return self._rules.identity(signed.payload, resource, self._clock(), CACHE_SECONDS)

    async def _load(self) -> object:
        """Fetch the JWK Set; raise `FetchError` if that fails."""
        if self._given is not None:
            return self._given
        fetched = await self._fetcher.get_json(self._jwks_uri or await self._discover("jwks_uri"))
        if not fetched.is_success:
            raise FetchError(f"the issuer answers with {fetched.status} instead of its keys")
        return fetched.document


class Introspection(_IssuerVerifier):
    """Verify access tokens of any form by asking their issuer (RFC 7662).

    The answer is cached for a short time: the `ResourceServer` caches an accepted token, never beyond its end; this
    object caches refusals. Concurrent requests with one token ask once.

    Args:
        issuer: The issuer, as in its metadata, character by character.
        client_id: Client identifier of this server at the issuer.
        client_secret: Its secret.
        endpoint: Introspection endpoint; by default from the metadata of the issuer.
        keep: Seconds for which an answer is cached: a revoked token stays valid for that time.
        options: `audience`, `skew`, `private`, `verify` and `clock`: see `IssuerOptions`.

    Attributes:
        issuers: The issuer, for the metadata of the resource.

    Raises:
        ValueError: The issuer is no URL to fetch from.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str,
        *,
        endpoint: str | None = None,
        keep: float = 30.0,
        **options: Unpack[IssuerOptions],
    ) -> None:
        super().__init__(issuer, endpoint, options, requires_expiry=False)
        self._authorization = basic_credentials(client_id, client_secret)
        self._endpoint, self._keep = endpoint, keep
        self._asking: dict[bytes, asyncio.Task[dict[str, Any]]] = {}
        self._refused: OrderedDict[bytes, tuple[float, InvalidToken | None]] = OrderedDict()  # -> end, reason

    async def verify(self, token: str, resource: str) -> Identity | None:
        """See `TokenVerifier`."""
        digest, issuer = hashlib.sha256(f"{token} {resource}".encode()).digest(), self._rules.issuer
        until, reason = self._refused.get(digest, (0.0, None))
        if until > self._clock():
            if reason is not None:
                raise InvalidToken(str(reason), reason.identity)
            return None
        claims = await self._claims(digest, token)
        if claims.get("active") is not True or not self._is_issuer(claims.get("iss", issuer)):
            self._refuse(digest)
            return None
        try:
            if claims.get("token_type") in ("refresh_token", "N_A"):
                raise InvalidToken("the token is no access token")
            return self._rules.identity(claims, resource, self._clock(), self._keep)
        except InvalidToken as error:
            small = None if error.identity is None else replace(error.identity, claims={})
            self._refuse(digest, InvalidToken(str(error), small))
            raise

    def _refuse(self, digest: bytes, reason: InvalidToken | None = None) -> None:
        self._refused[digest] = self._clock() + self._keep, reason
        while len(self._refused) > _MAX_REFUSED:
            self._refused.popitem(last=False)

    async def _claims(self, digest: bytes, token: str) -> dict[str, Any]:
        """Return the claims of a token, from a request that other callers may have begun."""
        asking, loop = self._asking.get(digest), asyncio.get_running_loop()
        if asking is None or asking.get_loop() is not loop:
            if len(self._asking) >= _MAX_REQUESTS:
                raise VerifierUnavailable("the issuer is asked about too many tokens at once")
            asking = self._asking[digest] = asyncio.create_task(self._ask(token))
            asking.add_done_callback(lambda done: loop.call_later(_LINGER, self._forget, digest, done))
        try:
            return await asyncio.shield(asking)
        except FetchError as error:
            log.warning("the issuer %s could not be asked about a token: %s", self._rules.issuer, error)
            raise VerifierUnavailable(f"{self._rules.issuer} could not be asked") from None
        finally:
            if asking.done():
                self._forget(digest, asking)

    def _forget(self, digest: bytes, asking: asyncio.Task[dict[str, Any]]) -> None:
        """Drop an answer, unless a new request for the same token has begun."""
        if self._asking.get(digest) is asking:
            del self._asking[digest]

    async def _ask(self, token: str) -> dict[str, Any]:
        """Return the claims of a token; raise `FetchError` if the issuer does not answer."""
        endpoint = self._endpoint = self._endpoint or await self._discover("introspection_endpoint")
        form = {"token": token, "token_type_hint": "access_token"}
        answer = await self._fetcher.post_form(endpoint, form, headers={"authorization": self._authorization})
        if not answer.is_success or answer.object is None:
            raise FetchError(f"it answers with {answer.status}, and not about the token")
        return answer.object
