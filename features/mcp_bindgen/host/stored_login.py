"""Authorization by stored logins; without one, the error names the command that logs in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_bindgen.http.client.authorization import Attempt, Authorizer
from mcp_bindgen.runtime.pauses import Pauses
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .auth_settings import MISSING, AuthSettings

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Login, Redirect
    from mcp_bindgen.auth.store import Key, Store

SETTINGS = "login"
"""The issuer in the keys of records with the settings of a login."""


class LoginNeeded(AuthorizationError):
    """A server wants a login or more scopes, and no user may be asked here.

    Attributes:
        command: The command that logs in.
    """

    def __init__(self, url: str, command: str, scopes: str = "") -> None:
        wants = f"more than was granted ({scopes})" if scopes else "a login"
        command += f" --scope {shlex.quote(scopes)}" if scopes else ""
        super().__init__(f"{url} wants {wants}; run: {command}")
        self.command = command


class TokenNeeded(AuthorizationError):
    """A server wants a token, and names no authorization server that issues one: an API key or a static token."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} wants a token and names no authorization server; pass an API key or a static token: "
            '"headers" of its entry, or --bearer-env KEY or --header NAME=VALUE of a command'
        )


async def names_issuer(url: str, challenges: Sequence[str]) -> bool:
    """Return whether a server that requires authorization may have an authorization server, or is one.

    Args:
        url: The server.
        challenges: The values of `WWW-Authenticate` in its response.
    """
    from mcp_bindgen.auth.challenges import parse
    from mcp_bindgen.auth.fetch import Fetcher, is_loopback
    from mcp_bindgen.auth.metadata import assumed_server, find_legacy_server, find_resource

    host = urlsplit(url).hostname or ""
    fetcher = Fetcher(trusted=frozenset([host]), loopback=is_loopback(host))
    parameters = (one.parameters.get("resource_metadata") for one in parse(challenges))
    named = next(filter(None, parameters), None)
    try:
        resource = await find_resource(fetcher, url, named)
        if resource is not None and resource.authorization_servers:
            return True
        return await find_legacy_server(fetcher, url) != assumed_server(url)
    except AuthorizationError:  # its absence is not certain
        return True


def settings_key(resource: str) -> Key:
    """Return the key of the settings of a login to a resource."""
    from mcp_bindgen.auth.store import Key

    return Key(SETTINGS, resource, "")


async def kept_settings(resource: str, store: Store) -> AuthSettings:
    """Return the settings of the last login to a resource, or the default settings."""
    try:
        return AuthSettings.read(await store.load(settings_key(resource)) or {})
    except ValueError:
        raise AuthorizationError(f"the stored login to {resource} is damaged; log in again") from None


class StoredLogin:
    """An `Auth` that uses an earlier login once a server asks for authorization.

    Servers without authorization cause no access to the store, and no import of `auth`.

    Args:
        command: The command that logs in.
        settings: The settings of the entry; by default those of the last login.
        login: Lets users log in; by default no user is asked.
        store: Keeps logins; by default the keyring, or files where there is none.
    """

    def __init__(
        self,
        command: str,
        settings: AuthSettings | None = None,
        *,
        login: Login | None = None,
        store: Store | None = None,
    ) -> None:
        self._command, self._settings, self._login, self._store = command, settings, login, store
        self._authorizers: dict[str, _Authorizer] = {}

    def authorizer(self, url: str) -> _Authorizer:
        """Return the authorizer of a server, the same object each time."""
        if url not in self._authorizers:
            self._authorizers[url] = _Authorizer(url, self)
        return self._authorizers[url]

    async def make(self, url: str) -> Authorizer:
        """Return the real authorizer of a server.

        Raises:
            AuthorizationError: The extra `auth` is not installed, or the stored login cannot be used.
        """
        shown = url.partition("?")[0]
        try:
            from mcp_bindgen.auth.metadata import canonical
            from mcp_bindgen.auth.store import default_store
        except ModuleNotFoundError:
            raise AuthorizationError(f"{shown} wants a login, but {MISSING}") from None
        store = self._store or default_store()
        settings = self._settings or await kept_settings(canonical(url), store)
        login = self._login or _Elsewhere(shown, self._command)
        made: Authorizer = settings.auth(login=login, store=store).authorizer(url)
        return made


class _Elsewhere:
    """A `Login` that refuses with the command to run."""

    is_enabled = False

    def __init__(self, url: str, command: str) -> None:
        self._url, self._command = url, command

    def redirect(self, preferred: str | None) -> AbstractAsyncContextManager[Redirect]:
        raise LoginNeeded(self._url, self._command)


class _Authorizer:
    """An `Authorizer` that makes the real one when the server asks for authorization."""

    def __init__(self, url: str, stored: StoredLogin) -> None:
        self.pauses: Pauses = Pauses()
        self.real: Authorizer | None = None
        self._url, self._stored = url, stored

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.real.extensions if self.real is not None else {}

    def attempt(self, *, may_ask: bool) -> _Attempt:
        return _Attempt(self, may_ask)

    async def make(self) -> Authorizer:
        if self.real is not None:
            return self.real
        real: Any = await self._stored.make(self._url)
        real.pauses = self.pauses  # time limits of the connection use these
        made: Authorizer = real
        self.real = made
        return made

    async def missing(self, challenges: Sequence[str]) -> str:
        """Return the granted and the challenged scopes as one text; empty if no challenge names a scope."""
        from mcp_bindgen.auth.challenges import parse
        from mcp_bindgen.auth.client.tokens import split, union

        real: Any = self.real
        grant = await real.current()
        wanted = [split(one.parameters.get("scope", "")) for one in parse(challenges)]
        scopes = union(grant.scopes if grant is not None else (), *wanted)
        return " ".join(one for one in scopes if one != "offline_access") if any(wanted) else ""


class _Attempt:
    """An `Attempt` for one request."""

    def __init__(self, authorizer: _Authorizer, may_ask: bool) -> None:
        self._authorizer, self._may_ask = authorizer, may_ask
        self._real: Attempt | None = None

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if self._real is None and self._authorizer.real is not None:
            self._real = self._authorizer.real.attempt(may_ask=self._may_ask)
        return await self._real.headers(method, url) if self._real is not None else {}

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        if self._real is None and status != 401:
            return False
        challenges = [value for name, value in headers if name.lower() == "www-authenticate"]
        if self._real is None:
            if challenges and not _is_ours(challenges):
                return False
            self._real = (await self._authorizer.make()).attempt(may_ask=self._may_ask)
            if await self._real.headers("POST", url):
                return True
        try:
            return await self._real.again(url, status, headers)
        except LoginNeeded as error:
            if status == 401 and not await names_issuer(url, challenges):
                raise TokenNeeded(url.partition("?")[0]) from None
            scopes = await self._authorizer.missing(challenges) if status == 403 else ""
            self._authorizer.real = None  # a login may be stored before the next request
            raise (LoginNeeded(url.partition("?")[0], error.command, scopes) if scopes else error) from None


def _is_ours(challenges: Sequence[str]) -> bool:
    from mcp_bindgen.auth.challenges import parse

    return any(one.scheme in ("bearer", "dpop") for one in parse(challenges))
