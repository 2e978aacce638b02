"""Logins and logouts, and a list of the stored logins; needs the extra `auth`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

from mcp_bindgen.auth.challenges import Challenge
from mcp_bindgen.auth.client.clients import is_document_url
from mcp_bindgen.auth.client.login import Login
from mcp_bindgen.auth.client.oauth import OAuth
from mcp_bindgen.auth.client.tokens import Grant
from mcp_bindgen.auth.fetch import Fetcher, is_loopback
from mcp_bindgen.auth.metadata import find_resource, resource_key
from mcp_bindgen.auth.store import Key, MemoryStore, Record, Store, put
from mcp_bindgen.runtime.connecting import connect
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .authorization import SETTINGS, AuthSettings, TokenNeeded, kept_settings, names_issuer, settings_key
from .configuration import Entry


@dataclass(frozen=True)
class Kept:
    """Stored login or registered client, without its secrets.

    Attributes:
        issuer: The authorization server.
        resource: The resource of the login; `None` for a client that is only registered.
        client: The client.
        scopes: The granted scopes.
        expires_at: Expiry of the access token in seconds since 1970, if known.
        refreshable: True if the login can be renewed without the user.
        is_bound: True if its tokens are bound to a key.
    """

    issuer: str
    resource: str | None
    client: str
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    refreshable: bool = False
    is_bound: bool = False


async def log_in(entry: Entry, settings: AuthSettings, login: Login, store: Store) -> Kept | None:
    """Let a user log in to a server; the login replaces an earlier one once the server accepts it.

    Args:
        entry: The server.
        settings: The settings for authorization.
        login: Lets the user log in.
        store: Keeps the login.

    Returns:
        The login; `None` if the server asks for none.

    Raises:
        TokenNeeded: The server wants a static token, and has no logins.
        AuthorizationError: Access is denied, or the servers cannot be used.
        ConnectionClosed: The server cannot be reached, or does not accept the login.
        ProtocolError: The server refuses.
    """
    assert entry.url is not None
    draft = _Draft(store)
    auth = settings.auth(login=login, store=draft)
    assert isinstance(auth, OAuth)
    try:
        async with connect(entry, auth=auth):
            pass
    except AuthorizationError:
        if settings.issuer is None and not await names_issuer(entry.url, ()):
            raise TokenNeeded(entry.url.partition("?")[0]) from None
        raise
    resource = resource_key(entry.url)
    authorizer = auth.authorizer(entry.url)
    if await authorizer.current() is None and await _offers_login(entry.url):
        await authorizer.renew(None, Challenge("bearer"), may_ask=True)
        async with connect(entry, auth=auth):
            pass
    if await authorizer.current() is None:
        return None
    await draft.keep()
    await put(store, settings_key(resource), settings.written())
    return next(one for one in await kept(draft.new) if one.resource == resource)


async def log_out(url: str, settings: AuthSettings | None, store: Store) -> tuple[int, list[AuthorizationError]]:
    """Revoke and forget the logins to a server, of all clients.

    Args:
        url: The server.
        settings: The settings of the login, if they are not stored.
        store: Keeps logins.

    Returns:
        The number of logins, and an error for each login that could not be revoked.

    Raises:
        AuthorizationError: The logins cannot be read or deleted.
    """
    try:
        resource = resource_key(url)
    except ValueError:
        raise AuthorizationError("a login to an invalid URL cannot be revoked") from None
    problems: list[AuthorizationError] = []
    keys = [key for key in await store.keys() if key.resource == resource]
    try:
        settings = settings or await kept_settings(resource, store)
    except AuthorizationError as error:
        settings = AuthSettings()
        problems.append(error)
    grants = [key for key in keys if key.issuer not in ("", SETTINGS)]
    for key in grants:
        try:
            client = await _client_of(key, settings, store)
            client.issuers = frozenset([key.issuer])
            client.quirks = settings.quirks()
            await put(store, Key("", resource, key.client), {"issuer": key.issuer})
            await client.logout(url)
        except AuthorizationError as error:
            problems.append(error)
    for key in keys:
        await put(store, key, None)
    return len(grants), problems


async def forget_all(store: Store) -> tuple[int, list[AuthorizationError]]:
    """Revoke and forget all logins and registered clients; see `log_out`."""
    count, problems = 0, list[AuthorizationError]()
    for resource in dict.fromkeys(key.resource for key in await store.keys() if key.resource):
        try:
            some, more = await log_out(resource, None, store)
        except AuthorizationError as error:
            some, more = 0, [error]
        count, problems = count + some, problems + more
    for key in await store.keys():
        await put(store, key, None)
    return count, problems


async def kept(store: Store) -> list[Kept]:
    """Return the stored logins and registered clients."""
    found: list[Kept] = []
    for key in await store.keys():
        record = await store.load(key)
        grant = Grant.load(record)
        if key.issuer in ("", SETTINGS) or record is None:
            continue
        if not key.resource:
            found.append(Kept(key.issuer, None, str(record.get("id", key.client))))
        elif grant is not None:
            state = grant.expires_at, grant.refresh_token is not None, grant.key is not None
            scopes = grant.granted or grant.scopes
            found.append(Kept(key.issuer, key.resource, grant.client_id, scopes, *state))
    return found


@runtime_checkable
class _FindsDamage(Protocol):
    """A store that can find its unreadable records."""

    async def damaged(self) -> Sequence[AuthorizationError]: ...


async def damaged(store: Store) -> Sequence[AuthorizationError]:
    """Return an error for each unreadable record, if the store can find these."""
    return await store.damaged() if isinstance(store, _FindsDamage) else ()


async def _offers_login(url: str) -> bool:
    """Return whether a server without required authorization names authorization servers."""
    host = urlsplit(url).hostname or ""
    fetcher = Fetcher(trusted=frozenset([host]), loopback=is_loopback(host))
    metadata = await find_resource(fetcher, url, None)
    return metadata is not None and bool(metadata.authorization_servers)


async def _client_of(key: Key, settings: AuthSettings, store: Store) -> OAuth:
    """Return the client of a grant; raise `AuthorizationError` if it is unknown."""
    grant = Grant.load(await store.load(key))
    if is_document_url(key.client):
        settings = AuthSettings(client_metadata_url=key.client)
    elif await store.load(Key(key.issuer, "", key.client)) is not None:
        return OAuth(client_name=key.client, login=None, store=store)
    elif key.client != settings.client_id:
        if grant is None or grant.client_id != key.client:
            reason = "the registration of the client is lost"
            raise AuthorizationError(f"the login was not revoked at {key.issuer}: {reason}")
        settings = AuthSettings(client_id=key.client)
    auth = settings.auth(store=store)
    assert isinstance(auth, OAuth)
    return auth


class _Draft:
    """A `Store` that holds a new login back until the server has accepted it; registered clients are kept at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.new = MemoryStore()

    def _of(self, key: Key) -> Store:
        return self.new if key.resource else self._store

    async def load(self, key: Key) -> Record | None:
        return await self._of(key).load(key)

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        return await self._of(key).replace(key, old, new)

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        return self._of(key).lock(key)

    async def keys(self) -> Sequence[Key]:
        return [*await self._store.keys(), *await self.new.keys()]

    async def keep(self) -> None:
        """Move the login to the store."""
        for key in await self.new.keys():
            await put(self._store, key, await self.new.load(key))
