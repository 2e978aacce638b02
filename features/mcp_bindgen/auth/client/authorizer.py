"""Authorization of the requests to one server: discovery, login, refresh and step-up (MCP 2026-07-28, "Authorization").

A `TokenSource` gets the tokens. The lock is held while a token is requested and never during a request to the server.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio

from mcp_bindgen.http.client.authorization import ask_at_once
from mcp_bindgen.http.client.bounded import shown
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.runtime.protocol.transport import AskUser

from .. import metadata
from ..challenges import Challenge, parse
from ..dpop import ALGORITHM, HEADER, NONCE, ProofKey
from ..fetch import Fetcher, is_loopback
from ..metadata import ResourceMetadata, ServerMetadata
from ..store import Key, Store, put
from .clients import KnownClient
from .tokens import Endpoints, Grant, Options, ServerQuirks, TokenRefused, TokenRequest, split, union

_MAX_HEADER_CHARACTERS = 8192
_MAX_NONCES = 2  # nonces that a server may request for one request
_MAX_RENEWALS = 2  # new tokens for one request
_MAX_STEP_UPS = 2  # requests for more scopes by one request; three logins with the first
_REPEAT_SECONDS = 60.0  # until a second token with the same scopes is requested because the server refuses the first
_LOGIN_NOTICE_SECONDS = 1.0  # until the log names the login of another process
_LOGIN_WAIT_SECONDS = 120.0  # for the login of another process


class TokenSource(ABC):
    """Base class of the ways to get tokens. It is an `Auth`; one object serves any number of servers and connections.

    Args:
        name: Name of the client, under which tokens are stored beside issuer and resource.
        issuers: Authorization servers that the source can use; none for any.
        default_store: Makes the store if `options` name none.
        options: Options of all sources.

    Attributes:
        extensions: Extensions of MCP that the source implements.
        is_interactive: True if a user has to log in.
        has_login: True if a user can log in now.
        providers: Further servers that the user has named, which may be inside of a network.
    """

    extensions: Mapping[str, Any] = {}
    is_interactive = False
    has_login = False
    providers: Sequence[str] = ()

    def __init__(
        self, name: str, issuers: Iterable[str | None], default_store: Callable[[], Store], options: Options
    ) -> None:
        scopes, limit = options.get("scopes"), options.get("limit")
        self.name = name
        self.issuers: frozenset[str] = frozenset(issuer for issuer in issuers if issuer is not None)
        self.store: Store = options.get("store") or default_store()
        self.fetcher: Fetcher = options.get("fetcher") or Fetcher()
        self.scopes: tuple[str, ...] | None = None if scopes is None else tuple(scopes)
        self.limit: frozenset[str] | None = None if limit is None else frozenset(limit)
        self.dpop: bool | None = options.get("dpop")
        self.quirks: Mapping[str, ServerQuirks] = options.get("quirks", {})
        self._authorizers: dict[str, ServerAuthorizer] = {}

    def authorizer(self, url: str) -> ServerAuthorizer:
        """Return the authorizer of the requests to a server."""
        if url not in self._authorizers:
            self._authorizers[url] = ServerAuthorizer(url, self)
        return self._authorizers[url]

    @abstractmethod
    async def obtain(self, request: TokenRequest) -> Grant:
        """Get a token.

        Raises:
            AuthorizationError: No token is issued.
        """

    @abstractmethod
    async def client_of(self, grant: Grant, server: ServerMetadata) -> KnownClient | None:
        """Return the client of a grant, to refresh or revoke it; `None` if it is no longer known."""

    def quirks_of(self, issuer: str) -> ServerQuirks:
        """Return the departures of an issuer."""
        return self.quirks.get(issuer, ServerQuirks())

    async def find_server(self, fetcher: Fetcher, issuer: str) -> ServerMetadata:
        """Return the metadata of an authorization server; see `metadata.find_server`."""
        return await metadata.find_server(fetcher, issuer, ignores_slash=self.quirks_of(issuer).ignore_final_slash)

    def spelled(self, issuer: str) -> str:
        """Return an issuer as the settings spell it, if they ignore its final slash."""
        other = issuer.removesuffix("/") if issuer.endswith("/") else f"{issuer}/"
        return other if self.quirks_of(other).ignore_final_slash else issuer

    async def note_refusal(self, error: TokenRefused, client: KnownClient, server: ServerMetadata) -> bool:
        """Take note that a server refuses a client; return True if the client has to register again."""
        return False

    async def bind(self, client: KnownClient, server: ServerMetadata) -> None:
        """Restrict a client without an issuer to its first authorization server; raises `AuthorizationError`."""
        if client.issuer is not None:
            return
        key = Key("", "", client.id)
        record = await self.store.load(key)
        while (first := (record or {}).get("issuer")) is None:  # another process may be first
            await self.store.replace(key, record, {"issuer": server.issuer})
            record = await self.store.load(key)
        if first != server.issuer:
            raise AuthorizationError(
                f"the client {client.id or 'of this program'} is known to {first}, and the server names "
                f"{server.issuer} now; if that is right, name the issuer of the client"
            )


class ServerAuthorizer:
    """Authorizer of the requests to one server.

    Args:
        url: The server.
        source: Gets the tokens.

    Attributes:
        nonce: Nonce for the next proof, if the server has named one.
    """

    def __init__(self, url: str, source: TokenSource) -> None:
        self._url = url
        try:
            self._resource = metadata.canonical(url)
            self._stored_as = metadata.resource_key(url)
            self._origin = metadata.origin(url)
            chosen = (url, *source.issuers, *source.providers)  # by the user
            named = {urlsplit(one).hostname or "" for one in chosen}
        except ValueError:
            raise AuthorizationError("the URL of the server, or of an issuer in its settings, is malformed") from None
        metadata.check_confidential(url)
        loopback = source.fetcher.loopback or any(map(is_loopback, named))
        self._fetcher = replace(source.fetcher, trusted=source.fetcher.trusted | named, loopback=loopback)
        self._endpoints = Endpoints(self._fetcher)
        self._source = source
        self._store = source.store
        self._lock = anyio.Lock()
        self._is_loaded = False
        self._grant: Grant | None = None
        self._key: ProofKey | None = None
        self._server: ServerMetadata | None = None
        self.nonce: str | None = None
        self._obtained: dict[tuple[str, ...], float] = {}  # issuer and scopes -> time of the last token

    @property
    def extensions(self) -> Mapping[str, Any]:
        """Extensions of MCP that are used."""
        return {**self._source.extensions, **({"io.modelcontextprotocol/auth/dpop": {}} if self._source.dpop else {})}

    def attempt(self, ask_user: AskUser | None) -> _Attempt:
        """Begin a request."""
        return _Attempt(self, ask_user)

    @property
    def has_login(self) -> bool:
        """True if a user can log in."""
        return self._source.has_login

    # --- current token ----------------------------------------------------------------------------------------

    async def current(self) -> Grant | None:
        """Return a valid token, refreshed if necessary; `None` if there is none."""
        if not self._is_loaded:
            await self._load()
        grant = self._grant
        if grant is None or grant.is_fresh or (grant.refresh_token is None and self._source.is_interactive):
            return self._valid
        try:
            await self.renew(grant, None, may_ask=False)
        except AuthorizationError as error:
            if not error.is_temporary or grant.is_expired:
                raise
            log.warning("a token could not be refreshed yet: %s", error)
        return self._valid

    async def forget(self) -> None:
        """Revoke and delete the tokens for this server.

        Raises:
            AuthorizationError: The tokens are deleted, but could not be revoked.
        """
        async with self._lock:
            await self._load()
            found, self._grant = self._grant, None
            if found is None:
                return
            key = self._key_of(found.issuer)
            async with self._store.lock(key):  # another process could store a refreshed token afterwards
                record = await self._store.load(key)
                grant = Grant.load(record) or found
                await self._store.replace(key, record, None)
                await put(self._store, self._key_of(""), None)
            server = await self._server_of(grant)
            client = await self._source.client_of(grant, server)
            if client is not None:
                if grant.refresh_token:
                    await self._endpoints.revoke(server, client, grant.refresh_token, "refresh_token")
                await self._endpoints.revoke(server, client, grant.access_token, "access_token")

    def authorization(self, grant: Grant, method: str, url: str) -> dict[str, str]:
        """Return the headers that carry a token."""
        metadata.check_same_origin(url, self._url)
        headers = {"authorization": f"{grant.scheme} {grant.access_token}"}
        if grant.scheme == "DPoP" and grant.key is not None:
            if self._key is None or self._key.dump() != grant.key:
                self._key = ProofKey.load(grant.key)
            headers[HEADER] = self._key.prove(method, url, token=grant.access_token, nonce=self.nonce)
        return headers

    # --- new tokens -------------------------------------------------------------------------------------------

    async def renew(
        self, sent: Grant | None, challenge: Challenge | None, *, may_ask: bool, may_refresh: bool = True
    ) -> bool:
        """Replace a token that expires or was refused; return True if there is another token.

        Concurrent callers wait for one renewal and use its token.

        Args:
            sent: The refused token, if one was sent.
            challenge: Challenge of the server; `None` for a refresh only.
            may_ask: True if a user may be asked to log in.
            may_refresh: False if the token was just refreshed.
        """
        async with self._exclusive():
            if self._valid not in (None, sent):
                return True
            if challenge is None:
                return await self._refresh()
            server, resource = await self._find(challenge)
            is_same = self._grant is not None and self._grant.issuer == server.issuer
            if may_refresh and is_same and await self._refresh():
                return True
            if self._source.is_interactive and not may_ask:
                return False
            before = self._grant.scopes if is_same and self._grant is not None else ()
            if not await self._obtain(server, resource, union(before, self._scopes(challenge, resource)), challenge):
                raise AuthorizationError(f"{shown(self._url)} refuses the tokens that {server.issuer} issues for it")
            return True

    async def widen(self, sent: Grant, challenge: Challenge, *, may_ask: bool) -> bool:
        """Get a token with more scopes (MCP, "Step-Up Authorization Flow"); return True if there is one."""
        if self._source.is_interactive and not may_ask:
            return False
        async with self._exclusive():
            if self._valid not in (None, sent):
                return True
            scopes = split(challenge.parameters.get("scope", "")[:_MAX_HEADER_CHARACTERS])
            server, resource = await self._find(challenge)
            return await self._obtain(server, resource, union(sent.scopes, scopes), challenge)

    @asynccontextmanager
    async def _exclusive(self) -> AsyncGenerator[None]:
        """Lock out other renewals of this process."""
        async with self._lock:
            await self._load()
            yield

    async def _obtain(
        self, server: ServerMetadata, resource: ResourceMetadata, scopes: tuple[str, ...], challenge: Challenge
    ) -> bool:
        """Get a token from the source; return False if the server refuses a recent token with the same scopes."""
        source, now = self._source, time.monotonic()
        excess = [one for one in scopes if source.limit is not None and one not in source.limit]
        if excess:
            raise AuthorizationError(f"{shown(self._url)} requests scopes beyond the limit: {' '.join(excess)[:200]}")
        if source.scopes is None or "offline_access" not in source.scopes:
            is_offered = source.is_interactive and "offline_access" in server.scopes_supported
            scopes = (*(one for one in scopes if one != "offline_access"), *(["offline_access"] if is_offered else []))
        subject = (server.issuer, *sorted(scopes))
        if self._valid is not None and now - self._obtained.get(subject, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._obtained = {key: at for key, at in self._obtained.items() if now - at < _REPEAT_SECONDS}
        is_bound = source.dpop
        if is_bound is None:
            is_required = challenge.scheme == "dpop" or resource.dpop_bound_access_tokens_required
            is_wanted = is_required or ALGORITHM in resource.dpop_signing_alg_values_supported
            is_bound = is_wanted and ALGORITHM in server.dpop_signing_alg_values_supported
        key = ProofKey.generate() if is_bound else None
        request = self._request(server, resource.resource, scopes, key, bool(source.dpop))
        before = self._grant
        async with self._turn():
            if source.has_login:
                await self._load()
            if self._valid in (None, before):
                await self._keep(await source.obtain(request))
                self._obtained[subject] = time.monotonic()
        return True

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Wait for a login in another process, whose result serves both, for a limited time.

        The user may have left that login alone, so this process asks as well after the limit.
        """
        async with AsyncExitStack() as stack:
            for seconds in (_LOGIN_NOTICE_SECONDS, _LOGIN_WAIT_SECONDS) if self._source.has_login else ():
                with anyio.move_on_after(seconds) as waiting:
                    await stack.enter_async_context(self._store.lock(self._key_of("")))
                if not waiting.cancelled_caught:
                    break
                if seconds == _LOGIN_NOTICE_SECONDS:
                    log.warning("another program has the user log in to %s; waiting", shown(self._url))
            yield

    async def _refresh(self) -> bool:
        """Use the refresh token unless another process has used it; return True if there is a new token."""
        grant = self._grant
        if grant is None:
            return False
        if grant.refresh_token is None:
            if self._source.is_interactive or grant.is_fresh:
                return False
            server = await self._server_of(grant)
            resource = ResourceMetadata(grant.resource)
            return await self._obtain(server, resource, grant.scopes, Challenge(grant.scheme.lower()))
        store, key = self._store, self._key_of(grant.issuer)
        async with store.lock(key):
            record = await store.load(key)
            stored = Grant.load(record)
            if record is None or (stored is not None and stored != grant):
                self._grant = stored  # None after a logout, which a refresh would undo
                return stored is not None
            server = await self._server_of(grant)
            client = await self._source.client_of(grant, server)
            if client is None:
                return False
            proof = ProofKey.load(grant.key) if grant.key is not None else None
            request = self._request(server, grant.resource, grant.scopes, proof, grant.scheme == "DPoP")
            form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
            with anyio.CancelScope(shield=True):  # cancellation would lose a token that can be used only once
                try:
                    newer = await request.send(client, form)
                except TokenRefused as error:
                    log.info("a token could not be refreshed: %s", error)
                    is_unknown = await self._source.note_refusal(error, client, server)
                    if is_unknown or error.error == "invalid_grant":  # otherwise the settings may be mended
                        self._grant = replace(grant, refresh_token=None)
                        await store.replace(key, record, self._grant.dump())
                    return False
                self._grant = grant.renewed(newer)
                if not await store.replace(key, record, self._grant.dump()):  # a login has replaced it meanwhile
                    await self._load()
            return True

    def _request(
        self, server: ServerMetadata, resource: str, scopes: tuple[str, ...], key: ProofKey | None, must_bind: bool
    ) -> TokenRequest:
        quirks = self._source.quirks_of(server.issuer)
        return TokenRequest(server, resource, scopes, key, must_bind, quirks, self._endpoints)

    # --- store ------------------------------------------------------------------------------------------------

    @property
    def _valid(self) -> Grant | None:
        """The grant unless it has expired."""
        return None if self._grant is None or self._grant.is_expired else self._grant

    async def _keep(self, grant: Grant) -> None:
        """Store a grant, and its issuer as the one to use for this server."""
        self._grant = grant
        with anyio.CancelScope(shield=True):  # cancellation would lose the refresh token
            await put(self._store, self._key_of(grant.issuer), grant.dump())
            await put(self._store, self._key_of(""), {"issuer": grant.issuer})

    async def _load(self) -> None:
        """Read the grant for this server, which another process may have renewed."""
        pointer = await self._store.load(self._key_of(""))
        issuer = (pointer or {}).get("issuer")
        if isinstance(issuer, str) and (not self._source.issuers or issuer in self._source.issuers):
            grant = Grant.load(await self._store.load(self._key_of(issuer)))
            # a damaged record must not send tokens elsewhere
            if grant is not None and grant.issuer == issuer and metadata.origin(grant.resource) == self._origin:
                self._grant = grant
        self._is_loaded = True

    def _key_of(self, issuer: str) -> Key:
        """Return the key of the grant of an issuer; without issuer, of the record that names the issuer."""
        return Key(issuer, self._stored_as, self._source.name)

    # --- discovery --------------------------------------------------------------------------------------------

    async def _find(self, challenge: Challenge) -> tuple[ServerMetadata, ResourceMetadata]:
        """Return the metadata of the authorization server to use, and of the resource."""
        resource = await metadata.find_resource(self._fetcher, self._url, challenge.parameters.get("resource_metadata"))
        if resource is None or not resource.authorization_servers:
            found = await metadata.find_legacy_server(self._fetcher, self._url)
            self._server = replace(found, issuer=self._usable([found.issuer])[0])
            return self._server, resource or ResourceMetadata(self._resource)
        known = self._grant.issuer if self._grant is not None else None
        failure: AuthorizationError | None = None
        for issuer in sorted(self._usable(resource.authorization_servers), key=lambda one: one != known):
            try:
                self._server = await self._source.find_server(self._fetcher, issuer)
            except AuthorizationError as error:
                failure = failure or error
            else:
                return self._server, resource
        assert failure is not None
        raise failure

    def _usable(self, issuers: Sequence[str]) -> list[str]:
        """Return the authorization servers that the source can use; raise `AuthorizationError` if there are none."""
        ours = self._source.issuers
        usable = [one for one in map(self._source.spelled, issuers) if not ours or one in ours]
        if not usable:
            theirs, known = (" or ".join(sorted(some)) for some in (issuers, ours))
            place = shown(self._url)
            known += metadata.slash_fix(issuers, ours)
            raise AuthorizationError(f"{place} accepts tokens of {theirs}, and this client is known to {known}")
        return usable

    async def _server_of(self, grant: Grant) -> ServerMetadata:
        """Return the metadata of the authorization server of a grant."""
        if self._server is None or self._server.issuer != grant.issuer:
            try:
                self._server = await self._source.find_server(self._fetcher, grant.issuer)
            except AuthorizationError as error:
                if error.is_temporary or metadata.origin(grant.issuer) != self._origin:
                    raise
                found = await metadata.find_legacy_server(self._fetcher, self._url)
                self._server = replace(found, issuer=self._source.spelled(found.issuer))
        return self._server

    def _scopes(self, challenge: Challenge, resource: ResourceMetadata) -> tuple[str, ...]:
        """Return the scopes to request (MCP, "Scope Selection Strategy")."""
        if self._source.scopes is not None:
            return self._source.scopes
        named = challenge.parameters.get("scope")
        return split(" ".join(resource.scopes_supported) if named is None else named[:_MAX_HEADER_CHARACTERS])


class _Attempt:
    """A request, sent again for a limited number of nonces, tokens and scopes. It is an `Attempt`."""

    def __init__(self, authorizer: ServerAuthorizer, ask_user: AskUser | None) -> None:
        self._authorizer, self._may_ask = authorizer, ask_user is not None
        self._ask_user = ask_user if ask_user is not None and authorizer.has_login else ask_at_once
        self._sent: Grant | None = None
        self._used_nonce: str | None = None
        self._nonces = self._renewals = self._step_ups = 0

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        self._sent = await self._authorizer.current()
        self._used_nonce = self._authorizer.nonce
        return {} if self._sent is None else self._authorizer.authorization(self._sent, method, url)

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        nonce = next((value for name, value in headers if name.lower() == NONCE), None)
        if nonce is not None and len(nonce) < _MAX_HEADER_CHARACTERS:
            self._authorizer.nonce = nonce
        if status not in (401, 403):
            return False
        challenges = parse(value for name, value in headers if name.lower() == "www-authenticate")
        ours = [one for one in challenges if one.scheme in ("bearer", "dpop")]
        if status == 401:
            errors = {one.parameters.get("error") for one in ours}
            has_new_nonce = self._authorizer.nonce != self._used_nonce  # also if another request got it first
            if "use_dpop_nonce" in errors and self._sent is not None and has_new_nonce:
                self._nonces += 1
                return self._nonces <= _MAX_NONCES
            self._renewals += 1
            if self._renewals > _MAX_RENEWALS:
                raise AuthorizationError("the server refuses every token")
            challenge, is_first = _best(ours) or Challenge("bearer"), self._renewals == 1
            renew = partial(self._authorizer.renew, self._sent, challenge, may_refresh=is_first)
            return await self._ask_user(partial(renew, may_ask=self._may_ask))
        wider = _best([one for one in ours if one.parameters.get("error") == "insufficient_scope"])
        if wider is None or self._sent is None or self._step_ups == _MAX_STEP_UPS:
            return False
        self._step_ups += 1
        return await self._ask_user(partial(self._authorizer.widen, self._sent, wider, may_ask=self._may_ask))


def _best(challenges: Sequence[Challenge]) -> Challenge | None:
    """Return the challenge to answer: the first for bound tokens, else the first."""
    return next((one for one in challenges if one.scheme == "dpop"), challenges[0] if challenges else None)
