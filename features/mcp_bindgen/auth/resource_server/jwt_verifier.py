"""Verify access tokens that are JSON Web Tokens, with the keys that their issuer publishes (RFC 9068, RFC 8725)."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from mcp_bindgen.runtime.protocol.access import SKEW, Identity

from ..fetch import FetchError
from .claims import ClaimRules, audiences
from .issuer import fetcher_for, read_metadata
from .jws import ALGORITHMS, BadSignature, PublicKey, Signed, check_header, take_apart, verify
from .keys import IssuerKeys
from .verifier import InvalidToken

ACCESS_TOKEN = "at+jwt"  # noqa: S105 - it is the name of a type
"""The type of an access token (RFC 9068, section 2.1), by which no other token of the issuer can be taken for one."""

KEPT = 300.0
"""Seconds for which a verified token is known at most, so that tokens of a key that was withdrawn go with it."""


class JwtVerifier:
    """Verify the access tokens of an issuer that are signed JSON Web Tokens.

    Of a token these are checked: type and algorithm, against a list; its signature, with a key that the issuer
    publishes; issuer and audience, exactly; that it expires, has not, and is valid already; that it is no ID token.

    Args:
        issuer: The issuer, as its metadata has it, character by character.
        audience: What the audience must have one of, where the issuer does not name the resource there; by default the
            resource.
        audience_claim: The claim that is the audience, where the issuer writes none: `client_id`, so that tokens of the
            clients that `audience` names are taken, whatever server they were issued for.
        keys: The JWK Set, where it is known; by default it is fetched.
        jwks_uri: Where the JWK Set is; by default the issuer's metadata says it.
        types: The types of token that are taken; an empty one stands for tokens that name none. An issuer that knows
            only `JWT` writes the same into ID tokens, so name it only for one that does not do better; tokens with
            claims of ID tokens are refused all the same.
        algorithms: The algorithms that are taken, all of `jws.ALGORITHMS`.
        skew: Seconds by which clocks may differ.
        private: Whether the issuer's host may have an address inside of a network, such as 10.1.2.3.
        verify: Whom to trust with TLS, such as an authority of one's own; by default who is trusted on this machine.
        clock: Tells the time, in seconds since 1970.

    Attributes:
        issuers: The issuer, for the metadata of the resource.

    Raises:
        ValueError: The issuer is no URL to fetch from, an algorithm is not known, the clients that are the audience are
            not named, or the keys are no JWK Set.
    """

    def __init__(
        self,
        issuer: str,
        *,
        audience: str | Collection[str] | None = None,
        audience_claim: Literal["aud", "client_id"] = "aud",
        keys: Mapping[str, Any] | None = None,
        jwks_uri: str | None = None,
        types: Collection[str] = (ACCESS_TOKEN,),
        algorithms: Collection[str] = ALGORITHMS,
        skew: float = SKEW,
        private: bool = False,
        verify: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        unknown = set(algorithms) - set(ALGORITHMS)
        if unknown:
            raise ValueError(f"algorithms of signatures are {', '.join(ALGORITHMS)}; not {', '.join(sorted(unknown))}")
        if audience_claim != "aud" and audience is None:
            raise ValueError("name the clients whose tokens are taken: audience=[...]")
        self.issuers = (issuer,)
        self._rules = ClaimRules(issuer, audiences(audience), audience_claim, skew)
        self._types = tuple(name.lower().removeprefix("application/") for name in types)
        self._algorithms = frozenset(algorithms)
        self._clock = clock
        self._fetcher = fetcher_for(issuer, jwks_uri, private=private, verify=verify)
        self._jwks_uri = jwks_uri
        self._given = keys
        self._keys = IssuerKeys(self._load, issuer)

    async def verify(self, token: str, resource: str) -> Identity | None:
        """See `TokenVerifier`."""
        signed = take_apart(token.encode("latin-1"))
        if signed is None or signed.payload.get("iss") != self._rules.issuer:
            return None
        algorithm = self._check(signed)
        id_ = signed.header.get("kid")
        key = await self._keys.find(id_, algorithm) if isinstance(id_, str | None) else None
        return self._verified(signed, key, resource)

    def _check(self, signed: Signed) -> str:
        """Return the algorithm of a token whose header is in order."""
        try:
            check_header(signed.header, self._types)
        except BadSignature as error:
            raise InvalidToken(f"the token {error}") from None
        algorithm = signed.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise InvalidToken("the token is signed with an algorithm that is not taken here")
        return algorithm

    def _verified(self, signed: Signed, key: PublicKey | None, resource: str) -> Identity:
        if key is None:
            raise InvalidToken("the token is signed with a key that its issuer does not publish")
        try:
            verify(signed, key.key)
        except BadSignature as error:
            raise InvalidToken(f"the token {error}") from None
        return self._rules.identity(signed.payload, resource, self._clock(), KEPT)

    async def _load(self) -> Any:
        """Fetch the JWK Set; raises `FetchError`."""
        if self._given is not None:
            return self._given
        url = self._jwks_uri
        if url is None:
            url = (await read_metadata(self._fetcher, self._rules.issuer)).get("jwks_uri")
        if not isinstance(url, str):
            raise FetchError("the metadata of the issuer does not say where its keys are")
        fetched = await self._fetcher.get_json(url)
        if not fetched.is_success:
            raise FetchError(f"the issuer answers with {fetched.status} instead of its keys")
        return fetched.document
