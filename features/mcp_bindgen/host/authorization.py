"""Authorization at the servers of a host: the `auth` of their entries, and stored logins."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anyio import to_thread

import mcp_bindgen.auth as oauth  # its classes load when they are used
from mcp_bindgen.http.client.authorization import Attempt, Authorizer
from mcp_bindgen.runtime.extras import NotInstalled
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.model.json_types import is_array
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.runtime.protocol.transport import AskUser
from mcp_bindgen.runtime.session.targets import Auth

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Login, Redirect
    from mcp_bindgen.auth.client.tokens import Options
    from mcp_bindgen.auth.store import Key, Store


_TYPES: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_name("authorization_types.toml").read_text("utf-8")
)
"""The types of `AuthSettings` and their members."""

_MAX_TOKEN_FILE_BYTES = 64 * 1024


@dataclass(frozen=True)
class AuthSettings:
    """Settings for authorization at a server; each attribute is the member of the same name in camel case.

    Attributes:
        type: `oauth` lets a user log in; `client_credentials` is for programs; `workload_identity` for workloads with
            tokens of their platform; `enterprise_managed` for users of an identity provider; `bearer` sends a token.
        client_id: A client that the authorization server knows.
        client_secret: Its secret.
        private_key: The key that it signs with instead, as PEM.
        client_metadata_url: The URL of the metadata document of the client.
        redirect_uri: The redirect URI, an address of this machine; by default one with any free port.
        issuer: The authorization server, which may have a private address; by default the server names it.
        scopes: The scopes to request instead of those that the server names.
        dpop: True to bind tokens to a key; by default if both servers support it.
        omit_resource: True if the issuer refuses the parameter `resource`.
        assume_pkce: True if the issuer supports PKCE without declaring it.
        ignore_final_slash: True if the issuer is the same with and without a final slash.
        token: The token to send, the token of the workload, or the ID token of the user.
        token_file: A file with the token instead; it is read for each use, as platforms renew it.
        token_type: The type of the user's token, if it is no ID token (RFC 8693, section 3).
        provider: The issuer of the user's identity provider.
        provider_client_id: The client at the provider.
        provider_client_secret: Its secret there.
    """

    type: str = "oauth"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    redirect_uri: str | None = None
    issuer: str | None = None
    scopes: tuple[str, ...] | None = None
    dpop: bool | None = None
    omit_resource: bool = False
    assume_pkce: bool = False
    ignore_final_slash: bool = False
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    token_type: str | None = None
    provider: str | None = None
    provider_client_id: str | None = None
    provider_client_secret: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> AuthSettings:
        """Return the settings of a JSON object.

        Raises:
            ValueError: A member is unknown, missing or invalid; the message names the member and no value.
        """
        kind: Any = value.get("type", "oauth")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise ValueError(f'"type" must be one of {", ".join(_TYPES)}')
        members, either = _TYPES[kind]["members"], _TYPES[kind].get("either", ())
        for member in value:
            if member not in ("type", *members):
                raise ValueError(f"{member!r} is no setting of the type {kind}; there are {', '.join(members)}")
        names = {one.name: wire_name(one.name) for one in fields(cls)}
        found: dict[str, Any] = {name: _checked(wire, value) for name, wire in names.items() if wire in value}
        found["type"] = kind
        for member in _TYPES[kind].get("needed", ()):
            if member not in value:
                raise ValueError(f'the type {kind} needs "{member}"')
        if either and sum(member in value for member in either) != 1:
            raise ValueError(f'the type {kind} needs either "{either[0]}" or "{either[1]}"')
        settings = cls(**found)
        settings._check()
        return settings

    def written(self) -> dict[str, Any]:
        """Return the settings as a JSON object that `read` takes."""
        found = {wire_name(one.name): getattr(self, one.name) for one in fields(self)}
        known = {name: found[name] for name in ("type", *_TYPES[self.type]["members"])}
        return {name: [*value] if name == "scopes" else value for name, value in known.items() if value is not None}

    def _check(self) -> None:
        if self.client_secret and not self.client_id:
            raise ValueError('"clientSecret" needs "clientId"')
        if self.client_id and self.client_metadata_url:
            raise ValueError('"clientId" and "clientMetadataUrl" both identify the client; give one')
        if self.client_secret and self.private_key:
            raise ValueError('"clientSecret" and "privateKey" both authenticate the client; give one')
        if (self.omit_resource or self.assume_pkce or self.ignore_final_slash) and not self.issuer:
            raise ValueError('departures such as "omitResource" are for one "issuer": name it')
        if self.redirect_uri is not None:
            self.place()

    def place(self) -> tuple[str, int, str]:
        """Return host, port and path of the redirect URI; port 0 for any free port.

        Raises:
            ValueError: It is no address of this machine.
        """
        if self.redirect_uri is None:
            return "127.0.0.1", 0, "/callback"
        try:
            parts = urlsplit(self.redirect_uri)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        plain = not (parts.query or parts.fragment or "@" in parts.netloc)
        if parts.scheme != "http" or host not in ("127.0.0.1", "localhost") or not port or not plain:
            raise ValueError('"redirectUri" must be like http://127.0.0.1:8765/callback, with a port of this machine')
        return host, port, parts.path

    def auth(self, *, login: Login | None = None, store: Store | None = None) -> Auth:
        """Return what authorizes requests by these settings.

        Args:
            login: Lets users log in; `None` if no user may be asked.
            store: Keeps grants; by default the keyring, or files where there is none.

        Raises:
            AuthorizationError: The extra `auth` is not installed, or a setting cannot be used.
        """
        try:
            return self._auth(login, store)
        except ModuleNotFoundError as error:
            raise AuthorizationError(str(NotInstalled.of(error, "authorization", "auth"))) from None
        except ValueError as error:
            raise AuthorizationError(str(error)) from None

    def quirks(self) -> Mapping[str, oauth.ServerQuirks]:
        """Return the departures of the issuer; needs the extra `auth`."""
        found = oauth.ServerQuirks(self.omit_resource, self.assume_pkce, self.ignore_final_slash)
        return {} if self.issuer is None else {self.issuer: found}

    def _auth(self, login: Login | None, store: Store | None) -> Auth:
        if self.type == "bearer":
            return oauth.Bearer(self.token or self._token)
        options: Options = {"scopes": self.scopes, "dpop": self.dpop, "quirks": self.quirks()}
        client = self._client()
        if self.type != "oauth":
            return self._machine(client, options)
        host, port, path = self.place()
        if self.redirect_uri is not None and isinstance(login, oauth.Browser | oauth.Headless):
            login = replace(login, port=port, path=path, host=host)
        options["store"] = store
        known = () if self.client_id is None else client
        auth = oauth.OAuth(known, client_metadata_url=self.client_metadata_url, login=login, **options)
        if self.issuer is not None:
            auth.issuers = frozenset([self.issuer])  # also of a client that registers itself
        return auth

    def _machine(self, client: oauth.KnownClient, options: Options) -> Auth:
        """Return what authorizes the requests of a program."""
        from mcp_bindgen.auth.client.tokens import ID_TOKEN

        if self.type == "client_credentials":
            return oauth.ClientCredentials(client, **options)
        token = self.token or self._token
        if self.type == "workload_identity":
            return oauth.WorkloadIdentity(token, client, **options)
        provider, there = self.provider or "", self._known(self.provider_client_id, self.provider_client_secret)
        kind = self.token_type or ID_TOKEN
        return oauth.EnterpriseManaged(token, provider, there, client, token_type=kind, **options)

    async def _token(self) -> str:
        """Return the token in the file; raise `AuthorizationError` if it cannot be read."""

        def read() -> str:
            with Path(self.token_file or "").expanduser().open("rb") as file:
                found = file.read(_MAX_TOKEN_FILE_BYTES + 1)
            if len(found) > _MAX_TOKEN_FILE_BYTES or not found.strip():
                raise ValueError
            return found.decode("ascii").strip()

        try:
            return await to_thread.run_sync(read)
        except OSError as error:
            why = error.strerror or type(error).__name__
        except ValueError:
            why = "it holds no token"
        except RuntimeError:
            why = "there is no such user"
        raise AuthorizationError(f"the token cannot be read from {self.token_file}: {why}")

    def _client(self) -> oauth.KnownClient:
        if self.private_key is not None:
            return oauth.PrivateKeyJwt(self.client_id or "", self.issuer, self.redirect_uri, self.private_key)
        return self._known(self.client_id, self.client_secret, self.issuer, self.redirect_uri)

    def _known(
        self, id_: str | None, secret: str | None, issuer: str | None = None, redirect_uri: str | None = None
    ) -> oauth.KnownClient:
        if secret is None:
            return oauth.KnownClient(id_ or "", issuer, redirect_uri)
        return oauth.ClientSecret(id_ or "", issuer, redirect_uri, secret)


def _checked(member: str, value: Mapping[str, Any]) -> Any:
    """Return a member as the value of its attribute; raise `ValueError` if it is invalid."""
    found: Any = value[member]
    if member == "scopes":
        if not is_array(found) or not all(isinstance(one, str) and one and " " not in one for one in found):
            raise ValueError('"scopes" must be a list of texts without spaces')
        return tuple(found)
    wanted = bool if member in ("dpop", "omitResource", "assumePkce", "ignoreFinalSlash") else str
    if not isinstance(found, wanted) or found == "":
        raise ValueError(f'"{member}" must be {"true or false" if wanted is bool else "text"}')
    return found


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

    parameters = (one.parameters.get("resource_metadata") for one in parse(challenges))
    named = next(filter(None, parameters), None)
    try:
        host = urlsplit(url).hostname or ""
        fetcher = Fetcher(trusted=frozenset([host]), loopback=is_loopback(host))
        resource = await find_resource(fetcher, url, named)
        if resource is not None and resource.authorization_servers:
            return True
        return await find_legacy_server(fetcher, url) != assumed_server(url)
    except (AuthorizationError, ValueError):  # its absence is not certain
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
        return self._authorizers.setdefault(url, _Authorizer(url, self))

    async def make(self, url: str) -> Authorizer:
        """Return the real authorizer of a server.

        Raises:
            AuthorizationError: The extra `auth` is not installed, or the stored login cannot be used.
        """
        shown = url.partition("?")[0]
        try:
            from mcp_bindgen.auth.keyring_store import default_store
            from mcp_bindgen.auth.metadata import resource_key
        except ModuleNotFoundError as error:
            raise AuthorizationError(str(NotInstalled.of(error, f"the login at {shown}", "auth"))) from None
        store = self._store or default_store()
        settings = self._settings or await kept_settings(resource_key(url), store)
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
        self.real: Authorizer | None = None
        self._url, self._stored = url, stored

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.real.extensions if self.real is not None else {}

    def attempt(self, ask_user: AskUser | None) -> _Attempt:
        return _Attempt(self, ask_user)

    async def make(self) -> Authorizer:
        if self.real is None:
            self.real = await self._stored.make(self._url)
        return self.real

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

    def __init__(self, authorizer: _Authorizer, ask_user: AskUser | None) -> None:
        self._authorizer, self._ask_user = authorizer, ask_user
        self._real: Attempt | None = None

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if self._real is None and self._authorizer.real is not None:
            self._real = self._authorizer.real.attempt(self._ask_user)
        return await self._real.headers(method, url) if self._real is not None else {}

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        if self._real is None and status != 401:
            return False
        challenges = [value for name, value in headers if name.lower() == "www-authenticate"]
        if self._real is None:
            if challenges and not _is_ours(challenges):
                return False
            self._real = (await self._authorizer.make()).attempt(self._ask_user)
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
