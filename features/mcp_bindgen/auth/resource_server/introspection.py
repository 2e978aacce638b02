"""Ask the issuer about tokens, which may be of any form (RFC 7662)."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.access import SKEW, Identity

from ..fetch import FetchError
from .claims import ClaimRules, audiences
from .issuer import fetcher_for, read_metadata
from .verifier import InvalidToken, VerifierUnavailable

_MOST_ASKED = 64  # tokens that the issuer is asked about at once
_MOST_REFUSED = 10_000  # tokens that are remembered as not good


class Introspection:
    """Verify access tokens by asking their issuer.

    What it says is kept for a short time: of a good token by the `ResourceServer`, never beyond the token's end; that
    one is not good, by this. About one token it is asked once at a time.

    Args:
        issuer: The issuer, as its metadata has it, character by character.
        client_id: Who asks: this server, as the issuer knows it.
        client_secret: Its secret.
        endpoint: Where to ask; by default the issuer's metadata says it.
        audience: What the audience must have one of, where the issuer does not name the resource there; by default the
            resource.
        keep: Seconds for which an answer is kept: a token that was revoked is good for that long.
        skew: Seconds by which clocks may differ.
        private: Whether the issuer's host may have an address inside of a network, such as 10.1.2.3.
        verify: Whom to trust with TLS, such as an authority of one's own; by default who is trusted on this machine.
        clock: Tells the time, in seconds since 1970.

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
        audience: str | Collection[str] | None = None,
        keep: float = 30.0,
        skew: float = SKEW,
        private: bool = False,
        verify: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuers = (issuer,)
        self._rules = ClaimRules(issuer, audiences(audience), skew=skew, expiry=False)
        self._credentials = b64encode(f"{quote_plus(client_id)}:{quote_plus(client_secret)}".encode()).decode()
        self._fetcher = fetcher_for(issuer, endpoint, private=private, verify=verify)
        self._endpoint = endpoint
        self._keep, self._clock = keep, clock
        self._asking: dict[bytes, asyncio.Task[dict[str, Any]]] = {}
        self._refused: OrderedDict[bytes, tuple[float, InvalidToken | None]] = OrderedDict()  # -> until when, and why

    async def verify(self, token: str, resource: str) -> Identity | None:
        """See `TokenVerifier`."""
        digest = hashlib.sha256(f"{token} {resource}".encode()).digest()
        until, reason = self._refused.get(digest, (0.0, None))
        if until > self._clock():
            if reason is not None:
                raise InvalidToken(str(reason), reason.identity)
            return None
        asking = self._asking.get(digest)
        if asking is None or asking.get_loop() is not asyncio.get_running_loop():
            if len(self._asking) >= _MOST_ASKED:
                raise VerifierUnavailable("the issuer is asked about too many tokens at once")
            asking = self._asking[digest] = asyncio.create_task(self._ask(token))
            loop = asyncio.get_running_loop()
            asking.add_done_callback(lambda done: loop.call_later(1.0, self._forget, digest, done))  # nobody may wait
        try:
            claims = await asyncio.shield(asking)
        except FetchError as error:
            log.warning("the issuer %s could not be asked about a token: %s", self._rules.issuer, error)
            raise VerifierUnavailable(f"{self._rules.issuer} could not be asked") from None
        finally:
            if asking.done():  # until here the answer serves who comes now
                self._forget(digest, asking)
        if claims.get("active") is not True or claims.get("iss", self._rules.issuer) != self._rules.issuer:
            self._refuse(digest)
            return None
        try:
            if claims.get("token_type") in ("refresh_token", "N_A"):
                raise InvalidToken("the token is no access token")
            return self._rules.identity(claims, resource, self._clock(), self._keep)
        except InvalidToken as error:
            whose = None if error.identity is None else replace(error.identity, claims={})  # which may be large
            self._refuse(digest, InvalidToken(str(error), whose))
            raise

    def _forget(self, digest: bytes, asking: asyncio.Task[dict[str, Any]]) -> None:
        """Let the next question about a token be asked, unless one is under way."""
        if self._asking.get(digest) is asking:
            del self._asking[digest]

    def _refuse(self, digest: bytes, reason: InvalidToken | None = None) -> None:
        self._refused[digest] = self._clock() + self._keep, reason
        while len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)

    async def _ask(self, token: str) -> dict[str, Any]:
        """Return what the issuer says of a token; raises `FetchError`."""
        if self._endpoint is None:
            named = (await read_metadata(self._fetcher, self._rules.issuer)).get("introspection_endpoint")
            if not isinstance(named, str):
                raise FetchError("the metadata of the issuer has no introspection_endpoint")
            self._endpoint = named
        answer = await self._fetcher.post_form(
            self._endpoint,
            {"token": token, "token_type_hint": "access_token"},
            headers={"authorization": f"Basic {self._credentials}"},
        )
        if not answer.is_success or answer.object is None:
            raise FetchError(f"it answers with {answer.status}, and not about the token")
        return answer.object
