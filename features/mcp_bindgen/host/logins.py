"""Log in to servers and out of them, and tell what is kept; needs the extra `auth`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp_bindgen.auth.challenges import Challenge
from mcp_bindgen.auth.client.clients import is_document_url
from mcp_bindgen.auth.client.login import Login
from mcp_bindgen.auth.client.oauth import OAuth
from mcp_bindgen.auth.client.tokens import Grant
from mcp_bindgen.auth.fetch import Fetcher, is_loopback
from mcp_bindgen.auth.metadata import canonical, find_resource
from mcp_bindgen.auth.store import Key, MemoryStore, Record, Store
from mcp_bindgen.runtime.connecting import connect
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .auth_settings import AuthSettings
from .configuration import Entry
from .stored_login import SETTINGS, kept_settings, settings_key


@dataclass(frozen=True)
class Kept:
    """Something that is kept, without its secrets.

    Attributes:
        issuer: The authorization server.
        resource: What was granted access to; `None` for a client that is only registered.
        client: The client.
        scopes: What was asked for and granted.
        expires_at: When the access token ends, in seconds since 1970, if that is known.
        refreshable: Whether it can be renewed without a login.
        is_bound: Whether it is bound to a key.
    """

    issuer: str
    resource: str | None
    client: str
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    refreshable: bool = False
    is_bound: bool = False


async def log_in(entry: Entry, settings: AuthSettings, login: Login, store: Store) -> Kept | None:
    """Have a user log in to a server, and keep that once the server takes it; what was kept before stays until then.

    Args:
        entry: The server.
        settings: How to be authorized there.
        login: How the user logs in.
        store: Keeps the login.

    Returns:
        What was granted; `None` if the server asks for no login.

    Raises:
        AuthorizationError: The user is not granted access, or the servers cannot be used.
        ConnectionClosed: There is no way to the server, or it does not take the login.
        ProtocolError: The server refuses.
    """
    assert entry.url is not None
    draft = _Draft(store)
    auth = settings.auth(login=login, store=draft)
    assert isinstance(auth, OAuth)
    async with connect(entry, auth=auth):
        pass
    resource = canonical(entry.url)
    authorizer = auth.authorizer(entry.url)
    if await authorizer.current() is None and await _offers_login(entry.url):
        await authorizer.renew(None, Challenge("bearer"), may_ask=True)
        async with connect(entry, auth=auth):
            pass
    if await authorizer.current() is None:
        return None
    await draft.keep()
    await _put(store, settings_key(resource), settings.written())
    return next(one for one in await kept(draft.new) if one.resource == resource)


async def log_out(url: str, settings: AuthSettings | None, store: Store) -> tuple[int, list[AuthorizationError]]:
    """Revoke and forget what was granted for a server, whoever the client was.

    Args:
        url: The server.
        settings: How a user logged in, if that is not kept.
        store: Keeps logins.

    Returns:
        How many logins were forgotten, and why some could not be revoked.

    Raises:
        AuthorizationError: What is kept cannot be read or deleted.
    """
    try:
        resource = canonical(url)
    except ValueError:
        raise AuthorizationError("a login is kept for something that is no URL") from None
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
            await _put(store, Key("", resource, key.client), {"issuer": key.issuer})
            await client.logout(url)
        except AuthorizationError as error:
            problems.append(error)
    for key in keys:
        await _put(store, key, None)
    return len(grants), problems


async def forget_all(store: Store) -> tuple[int, list[AuthorizationError]]:
    """Revoke and forget everything that is kept, registrations of clients included; see `log_out`."""
    count, problems = 0, list[AuthorizationError]()
    for resource in dict.fromkeys(key.resource for key in await store.keys() if key.resource):
        try:
            some, more = await log_out(resource, None, store)
        except AuthorizationError as error:
            some, more = 0, [error]
        count, problems = count + some, problems + more
    for key in await store.keys():
        await _put(store, key, None)
    return count, problems


async def kept(store: Store) -> list[Kept]:
    """Return what is kept: logins, and clients that are registered."""
    found: list[Kept] = []
    for key in await store.keys():
        record = await store.load(key)
        grant = Grant.load(record)
        if key.issuer in ("", SETTINGS) or record is None:
            continue
        if not key.resource:
            found.append(Kept(key.issuer, None, str(record.get("id", key.client))))
        elif grant is not None:
            found.append(
                Kept(
                    key.issuer,
                    key.resource,
                    grant.client_id,
                    grant.scopes,
                    grant.expires_at,
                    grant.refresh_token is not None,
                    grant.key is not None,
                )
            )
    return found


async def damaged(store: Store) -> Sequence[AuthorizationError]:
    """Return an error for each record of a store that cannot be read, as far as the store can tell."""
    find: Callable[[], Awaitable[Sequence[AuthorizationError]]] | None = getattr(store, "damaged", None)
    return () if find is None else await find()


async def _offers_login(url: str) -> bool:
    """Tell whether a server that lets anybody in names authorization servers all the same."""
    host = urlsplit(url).hostname or ""
    fetcher = Fetcher(trusted=frozenset([host]), loopback=is_loopback(host))
    metadata = await find_resource(fetcher, url, None)
    return metadata is not None and bool(metadata.authorization_servers)


async def _client_of(key: Key, settings: AuthSettings, store: Store) -> OAuth:
    """Return what something was granted to; raise `AuthorizationError` if nobody knows."""
    grant = Grant.load(await store.load(key))
    if is_document_url(key.client):
        settings = AuthSettings(client_metadata_url=key.client)
    elif await store.load(Key(key.issuer, "", key.client)) is not None:
        return OAuth(client_name=key.client, login=None, store=store)
    elif key.client != settings.client_id:
        if grant is None or grant.client_id != key.client:
            raise AuthorizationError(f"{key.issuer} was not told, as the registration of the client is not there")
        settings = AuthSettings(client_id=key.client)
    auth = settings.auth(store=store)
    assert isinstance(auth, OAuth)
    return auth


class _Draft:
    """Keeps a login apart until it is known to be good; registrations of clients are kept at once. It is a `Store`."""

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
        """Keep the login."""
        for key in await self.new.keys():
            await _put(self._store, key, await self.new.load(key))


async def _put(store: Store, key: Key, record: Record | None) -> None:
    """Keep a record, whatever is kept there."""
    while not await store.replace(key, await store.load(key), record):
        pass
