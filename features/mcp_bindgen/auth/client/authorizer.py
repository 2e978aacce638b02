"""Authorize the requests to one server: find out who issues tokens for it, get one, keep it fresh, and widen it.

MCP 2026-07-28, "Authorization". How a token is got is left to a `TokenSource`; everything else is here, once. The lock
is held while a token is got and never while a request is under way.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import anyio

from mcp_bindgen.runtime.concurrency import Pauses
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..challenges import Challenge, parse
from ..dpop import ALGORITHM, HEADER, NONCE, ProofKey
from ..fetch import is_loopback, place
from ..metadata import ResourceMetadata, ServerMetadata, canonical, check_confidential, origin
from ..store import Key, Record, Store
from .discovery import find_legacy_server, find_resource, find_server
from .grants import Grant, TokenRefused, split, union
from .source import ServerQuirks, Settings, TokenRequest, TokenSource
from .token_endpoint import Endpoints

_LONGEST = 8192
_NONCES = 2  # times that a server may want another nonce for one request
_RENEWALS = 2  # times that one request is sent again with another token
_AGAIN = 60.0  # seconds in which a token with the same scopes is not got again because the server refuses it
_SOON = 1.0  # seconds after which it is told that another process has the user log in
_OTHERS = 120.0  # seconds to wait for that
_STEPS = 2  # times that one request may want more scopes; together with the first login, three


class ServerAuthorizer:
    """Authorizes the requests to one server. It is an `Authorizer`.

    Args:
        url: The server.
        source: How to get tokens.
        settings: Everything else.

    Attributes:
        pauses: Tells who measures time that somebody is asked.
    """

    def __init__(self, url: str, source: TokenSource, settings: Settings) -> None:
        self.pauses = Pauses()
        self._url = url
        try:
            self._resource = canonical(url)
            host = origin(url)
        except ValueError:
            raise AuthorizationError(f"{place(url)} is not the URL of a server") from None
        check_confidential(url)
        fetcher = settings.fetcher
        named = {urlsplit(one).hostname or "" for one in (host, *source.issuers)}  # whom the user named
        local = fetcher.loopback or any(map(is_loopback, named))
        self._settings = replace(settings, fetcher=replace(fetcher, trusted=fetcher.trusted | named, loopback=local))
        self._source = source
        self._endpoints = Endpoints(self._settings.fetcher)
        self._lock = anyio.Lock()
        self._loaded = False
        self._grant: Grant | None = None
        self._key: ProofKey | None = None
        self._server: ServerMetadata | None = None
        self._nonce: str | None = None
        self._obtained: dict[tuple[str, ...], float] = {}  # scopes -> when a token with them was got

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions of the protocol that are used here."""
        return {**self._source.extensions, **({"io.modelcontextprotocol/auth/dpop": {}} if self._settings.dpop else {})}

    def attempt(self, *, may_ask: bool) -> _Attempt:
        """Begin a request."""
        return _Attempt(self, may_ask)

    # --- what is at hand --------------------------------------------------------------------------------------

    async def current(self) -> Grant | None:
        """Return a token that is worth sending, refreshed if it needs to be; `None` if there is none."""
        if not self._loaded:
            await self._load()
        grant = self._grant
        if grant is None or grant.is_fresh or (grant.refresh_token is None and self._source.asks):
            return None if grant is None or grant.is_expired else grant
        try:
            await self.renew(grant, None, may_ask=False)
        except AuthorizationError as error:
            if not (error.is_temporary and not grant.is_expired):
                raise
            log.warning("a token could not be refreshed yet: %s", error)
        return self._grant if self._grant is not None and not self._grant.is_expired else None

    async def forget(self) -> None:
        """Revoke and delete what was granted for this server; what cannot be revoked is deleted all the same.

        Raises:
            AuthorizationError: It is deleted, but could not be revoked.
        """
        store = self._settings.store
        async with self._lock:
            await self._load(again=True)
            found, self._grant = self._grant, None
            if found is None:
                return
            key = self._key_of(found.issuer)
            async with store.lock(key):  # who refreshes it meanwhile, in another process, would keep it again
                record = await store.load(key)
                grant = Grant.load(record) or found
                await store.replace(key, record, None)
                pointer = Key("", self._resource, self._source.name)
                await store.replace(pointer, await store.load(pointer), None)
            server = await self._server_of(grant)
            client = await self._source.client(grant, server, self._settings)
            if client is not None:
                if grant.refresh_token:
                    await self._endpoints.revoke(server, client, grant.refresh_token, "refresh_token")
                await self._endpoints.revoke(server, client, grant.access_token, "access_token")

    def authorization(self, grant: Grant, method: str, url: str) -> dict[str, str]:
        """Return the headers that show a token."""
        if origin(url) != origin(self._url):
            raise AuthorizationError("a token is not sent to another server than the one that it is for")
        headers = {"authorization": f"{grant.scheme} {grant.access_token}"}
        if grant.scheme == "DPoP" and grant.key is not None:
            if self._key is None or self._key.dump() != grant.key:
                self._key = ProofKey.load(grant.key)
            headers[HEADER] = self._key.prove(method, url, token=grant.access_token, nonce=self._nonce)
        return headers

    def hear(self, nonce: str | None) -> bool:
        """Take note of the nonce in a response; tell whether it is new."""
        is_new = nonce is not None and nonce != self._nonce and len(nonce) < _LONGEST
        if is_new:
            self._nonce = nonce
        return is_new

    # --- getting another one ----------------------------------------------------------------------------------

    async def renew(
        self, sent: Grant | None, challenge: Challenge | None, *, may_ask: bool, may_refresh: bool = True
    ) -> bool:
        """Get a token in place of one that expires or was refused; tell whether there is one.

        Whoever comes while one is got waits for it and takes it.

        Args:
            sent: The token that was refused, if one was sent.
            challenge: What the server said when it refused.
            may_ask: Whether a person may be asked.
            may_refresh: Whether a refresh may help; it does not if the token was just refreshed.
        """
        async with AsyncExitStack() as stack:
            if may_ask and self._source.asks:
                stack.enter_context(self.pauses.paused())
            await stack.enter_async_context(self._lock)
            await self._load(again=True)
            if self._grant is not None and self._grant != sent and not self._grant.is_expired:
                return True
            if challenge is None:
                return await self._refresh()
            server, resource, metadata = await self._find(challenge)
            same = self._grant is not None and self._grant.issuer == server.issuer
            if may_refresh and same and await self._refresh():
                return True
            if self._source.asks and not may_ask:
                return False
            before = self._grant.scopes if self._grant is not None else ()
            scopes = union(before, self._scopes(challenge, metadata))
            if not await self._obtain(server, resource, metadata, scopes, challenge):
                raise AuthorizationError(f"{place(self._url)} refuses the tokens that {server.issuer} issues for it")
            return True

    async def widen(self, sent: Grant, challenge: Challenge, *, may_ask: bool) -> bool:
        """Get a token with more scopes (MCP, "Step-Up Authorization Flow"); tell whether there is one."""
        if self._source.asks and not may_ask:
            return False
        async with AsyncExitStack() as stack:
            if self._source.asks:
                stack.enter_context(self.pauses.paused())
            await stack.enter_async_context(self._lock)
            await self._load(again=True)
            if self._grant is not None and self._grant != sent and not self._grant.is_expired:
                return True
            wanted = split(challenge.parameters.get("scope", "")[:_LONGEST])
            server, resource, metadata = await self._find(challenge)
            return await self._obtain(server, resource, metadata, union(sent.scopes, wanted), challenge)

    async def _obtain(
        self,
        server: ServerMetadata,
        resource: str,
        metadata: ResourceMetadata | None,
        scopes: tuple[str, ...],
        challenge: Challenge,
    ) -> bool:
        """Get a token from the source; tell whether that was worth it: not if such a token was got a moment ago."""
        settings, now = self._settings, time.monotonic()
        excess = [one for one in scopes if settings.limit is not None and one not in settings.limit]
        if excess:
            raise AuthorizationError(f"{place(self._url)} wants scopes beyond the limit: {' '.join(excess)[:200]}")
        if settings.scopes is None or "offline_access" not in settings.scopes:
            offered = self._source.asks and "offline_access" in (server.scopes or ())
            scopes = (*(one for one in scopes if one != "offline_access"), *(["offline_access"] if offered else []))
        asked = (server.issuer, *sorted(scopes))
        holds = self._grant is not None and not self._grant.is_expired
        if holds and now - self._obtained.get(asked, -_AGAIN) < _AGAIN:
            return False
        self._obtained = {key: at for key, at in self._obtained.items() if now - at < _AGAIN}
        bound = settings.dpop
        if bound is None:
            known = ALGORITHM in server.dpop_algorithms
            bound = known and (challenge.scheme == "dpop" or (metadata is not None and metadata.wants_dpop))
        quirks = settings.quirks.get(server.issuer, ServerQuirks())
        key = ProofKey.generate() if bound else None
        wanted = TokenRequest(server, resource, scopes, key, bool(settings.dpop), quirks)
        before = self._grant
        async with self._turn():
            if self._source.opens_logins:
                await self._load(again=True)
            if self._grant is None or self._grant == before or self._grant.is_expired:
                await self._keep(await self._source.obtain(wanted, self._endpoints, settings))
                self._obtained[asked] = time.monotonic()
        return True

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Wait while another process asks the user for the same, whose answer serves both; but not for long.

        Who asks may have been left alone with the question, so after a while this process asks as well.
        """
        async with AsyncExitStack() as stack:
            if self._source.opens_logins:
                for patience in (_SOON, _OTHERS):
                    with anyio.move_on_after(patience) as waiting:
                        lock = self._settings.store.lock(Key("", self._resource, self._source.name))
                        await stack.enter_async_context(lock)
                    if not waiting.cancelled_caught:
                        break
                    if patience == _SOON:
                        log.warning("another program has the user log in to %s; waiting for that", place(self._url))
            yield

    async def _refresh(self) -> bool:
        """Use the refresh token, if there is one, and if no other process has done so; tell whether that worked."""
        grant = self._grant
        if grant is None:
            return False
        if grant.refresh_token is None:
            if self._source.asks or grant.is_fresh:
                return False
            server = await self._server_of(grant)
            return await self._obtain(server, grant.resource, None, grant.scopes, Challenge(grant.scheme.lower()))
        store, key = self._settings.store, self._key_of(grant.issuer)
        async with store.lock(key):
            record = await store.load(key)
            stored = Grant.load(record)
            if stored is not None and stored != grant:
                self._grant = stored
                return True
            server = await self._server_of(grant)
            client = await self._source.client(grant, server, self._settings)
            if client is None:
                return False
            quirks = self._settings.quirks.get(server.issuer, ServerQuirks())
            form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
            if not quirks.omit_resource:
                form["resource"] = grant.resource
            proof = ProofKey.load(grant.key) if grant.key is not None else None
            wanted = TokenRequest(server, grant.resource, grant.scopes, proof, grant.scheme == "DPoP", quirks)
            with anyio.CancelScope(shield=True):  # who leaves now would burn a token that can be used only once
                try:
                    answer = await self._endpoints.token(server, client, form, proof)
                except TokenRefused as error:
                    log.info("a refresh token is no longer good: %s", error)
                    self._grant = replace(grant, refresh_token=None)
                    await store.replace(key, record, self._grant.dump())
                    return False
                await self._keep(grant.renewed(wanted.grant(answer, client)))
            return True

    async def _keep(self, grant: Grant) -> None:
        """Keep a grant, and that it is the one for this server."""
        store, key = self._settings.store, self._key_of(grant.issuer)
        self._grant = grant
        with anyio.CancelScope(shield=True):  # a refresh token that was got and is not kept is lost
            await _put(store, key, grant.dump())
            await _put(store, Key("", self._resource, self._source.name), {"issuer": grant.issuer})

    async def _load(self, *, again: bool = False) -> None:
        """Read what is kept for this server; processes share it."""
        if self._loaded and not again:
            return
        pointer = await self._settings.store.load(Key("", self._resource, self._source.name))
        issuer = (pointer or {}).get("issuer")
        if isinstance(issuer, str) and (not self._source.issuers or issuer in self._source.issuers):
            grant = Grant.load(await self._settings.store.load(self._key_of(issuer)))
            if grant is not None and grant.issuer == issuer and self._is_for_us(grant):
                self._grant = grant
        self._loaded = True

    def _is_for_us(self, grant: Grant) -> bool:
        """Tell whether a grant is for this server: what is kept may be damaged, but must not lead elsewhere."""
        return origin(grant.resource) == origin(self._url)

    def _key_of(self, issuer: str) -> Key:
        return Key(issuer, self._resource, self._source.name)

    # --- finding out who issues them --------------------------------------------------------------------------

    async def _find(self, challenge: Challenge) -> tuple[ServerMetadata, str, ResourceMetadata | None]:
        """Return the authorization server to use, what the server is called there, and what it says of itself."""
        fetcher = self._settings.fetcher
        metadata = await find_resource(fetcher, self._url, challenge.parameters.get("resource_metadata"))
        if metadata is None or not metadata.servers:
            server = await find_legacy_server(fetcher, self._url)
            if self._source.issuers and server.issuer not in self._source.issuers:
                raise self._stranger([server.issuer])
            self._server = server
            return server, metadata.resource if metadata is not None else self._resource, metadata
        known = self._grant.issuer if self._grant is not None else None
        usable = [one for one in metadata.servers if not self._source.issuers or one in self._source.issuers]
        if not usable:
            raise self._stranger(metadata.servers)
        failure: AuthorizationError | None = None
        for issuer in sorted(usable, key=lambda one: one != known):
            try:
                self._server = await find_server(fetcher, issuer)
            except AuthorizationError as error:
                failure = failure or error
            else:
                return self._server, metadata.resource, metadata
        assert failure is not None
        raise failure

    async def _server_of(self, grant: Grant) -> ServerMetadata:
        """Return the metadata of the server that granted something."""
        if self._server is None or self._server.issuer != grant.issuer:
            try:
                self._server = await find_server(self._settings.fetcher, grant.issuer)
            except AuthorizationError as error:
                if error.is_temporary or origin(grant.issuer) != origin(self._url):
                    raise
                self._server = await find_legacy_server(self._settings.fetcher, self._url)
        return self._server

    def _stranger(self, issuers: Sequence[str]) -> AuthorizationError:
        ours, theirs = (" or ".join(sorted(some)) for some in (self._source.issuers, issuers))
        return AuthorizationError(f"{place(self._url)} takes tokens of {theirs}, and this client is known to {ours}")

    def _scopes(self, challenge: Challenge, metadata: ResourceMetadata | None) -> tuple[str, ...]:
        """Choose scopes (MCP, "Scope Selection Strategy")."""
        named = challenge.parameters.get("scope")
        if self._settings.scopes is not None:
            return self._settings.scopes
        if named is not None:
            return split(named[:_LONGEST])
        listed = metadata.scopes if metadata is not None else None
        return split(" ".join(listed)) if listed else ()


class _Attempt:
    """One request, sent as often as it takes and no more. It is an `Attempt`."""

    def __init__(self, authorizer: ServerAuthorizer, may_ask: bool) -> None:
        self._authorizer = authorizer
        self._may_ask = may_ask
        self._sent: Grant | None = None
        self._nonces = _NONCES
        self._renewals = _RENEWALS
        self._steps = _STEPS

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        self._sent = await self._authorizer.current()
        return {} if self._sent is None else self._authorizer.authorization(self._sent, method, url)

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        nonce = next((value for name, value in headers if name.lower() == NONCE), None)
        is_new = self._authorizer.hear(nonce)
        if status not in (401, 403):
            return False
        challenges = parse(value for name, value in headers if name.lower() == "www-authenticate")
        ours = [one for one in challenges if one.scheme in ("bearer", "dpop")]
        errors = {one.parameters.get("error") for one in ours}
        if status == 401 and "use_dpop_nonce" in errors and self._sent is not None and is_new:
            self._nonces -= 1
            return self._nonces >= 0
        if status == 401:
            return await self._renew(_best(ours) or Challenge("bearer"))
        wider = [one for one in ours if one.parameters.get("error") == "insufficient_scope"]
        challenge = _best(wider)
        return challenge is not None and await self._widen(challenge)

    async def _renew(self, challenge: Challenge) -> bool:
        self._renewals -= 1
        if self._renewals < 0:
            raise AuthorizationError("the server refuses every token that is sent to it")
        is_first = self._renewals == _RENEWALS - 1
        return await self._authorizer.renew(self._sent, challenge, may_ask=self._may_ask, may_refresh=is_first)

    async def _widen(self, challenge: Challenge) -> bool:
        self._steps -= 1
        if self._sent is None or self._steps < 0:
            return False
        return await self._authorizer.widen(self._sent, challenge, may_ask=self._may_ask)


def _best(challenges: Sequence[Challenge]) -> Challenge | None:
    """Return the challenge to act on: that of bound tokens, else the first."""
    return next((one for one in challenges if one.scheme == "dpop"), challenges[0] if challenges else None)


async def _put(store: Store, key: Key, record: Record) -> None:
    """Keep a record, whatever is kept there."""
    while not await store.replace(key, await store.load(key), record):
        pass
