"""Log users in: `connect(url, auth=OAuth())`.

MCP 2026-07-28, "Authorization Flow Steps"; OAuth 2.1, section 4.1; RFC 8628.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Unpack

import anyio

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..keyring_store import default_store
from ..metadata import ServerMetadata
from ..store import Key
from . import registration
from .authorizer import ServerAuthorizer
from .clients import KnownClient, is_document_url
from .grants import Grant, TokenRefused
from .login import Browser, DeviceLogin, Login, device_code
from .request import AuthorizationRequest, check_redirect
from .source import Options, Settings, TokenRequest, settings
from .token_endpoint import Endpoints

AskClient = Callable[[str, str], Awaitable[KnownClient]]
"""Asks the user for a client: the issuer that has to know it, and the address that users come back to -> the client."""


class OAuth:
    """Log a user in where a server wants it, and keep what is granted. It is an `Auth`.

    One object serves any number of servers and connections.

    Args:
        client: The client that authorization servers know, or several for different ones. Without one, it is known by
            `client_metadata_url` where that is possible, or registers itself.
        client_metadata_url: Where the metadata document of this client is published (`client_metadata` writes one).
        client_name: What users are shown when the client registers itself.
        login: How users log in: `Browser()`, `Headless()`, or `Manual(...)`; `None` if they must not be asked, so that
            only what was granted before is used.
        ask_client: Asks the user for a client where there is no other way.
        parameters: Further parameters of the request that users bring to the authorization server.
        options: Those of all ways (`Options`); tokens are kept in the keyring, or in files where there is none.

    Raises:
        ValueError: The options contradict each other.
    """

    def __init__(
        self,
        client: KnownClient | Sequence[KnownClient] = (),
        *,
        client_metadata_url: str | None = None,
        client_name: str = "mcp-bindgen",
        login: Login | None = Browser(),  # noqa: B008 - it is immutable
        ask_client: AskClient | None = None,
        parameters: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        clients = [client] if isinstance(client, KnownClient) else list(client)
        if len({one.issuer for one in clients}) < len(clients):
            raise ValueError("clients must name different issuers")
        if client_metadata_url is not None and not is_document_url(client_metadata_url):
            raise ValueError("client_metadata_url must be an https URL with a path")
        self._source = _Login(clients, client_metadata_url, client_name, login, ask_client, parameters or {})
        self._settings = settings(options, options.get("store") or default_store())
        self._authorizers: dict[str, ServerAuthorizer] = {}

    def authorizer(self, url: str) -> ServerAuthorizer:
        """Return what authorizes requests to a server."""
        if url not in self._authorizers:
            self._authorizers[url] = ServerAuthorizer(url, self._source, self._settings)
        return self._authorizers[url]

    async def logout(self, url: str) -> None:
        """Revoke what was granted for a server, and forget it.

        Raises:
            AuthorizationError: It is forgotten, but could not be revoked.
        """
        await self.authorizer(url).forget()


class _Login:
    """Gets tokens by having a user log in. It is a `TokenSource`."""

    asks = True

    def __init__(
        self,
        clients: Sequence[KnownClient],
        document: str | None,
        name: str,
        login: Login | None,
        ask_client: AskClient | None,
        parameters: Mapping[str, str],
    ) -> None:
        self._clients = clients
        self._document = document
        self._login = login
        self.opens_logins: bool = getattr(login, "opens_logins", login is not None)
        self._ask_client = ask_client
        self._parameters = parameters
        self._client_name = name
        self.name = clients[0].id if len(clients) == 1 else document or name
        self.extensions: Mapping[str, Any] = {}
        issuers = [one.issuer for one in clients if one.issuer is not None]
        only = clients and len(issuers) == len(clients)
        self.issuers = frozenset(issuers if only else ())

    async def client(self, grant: Grant, server: ServerMetadata, settings: Settings) -> KnownClient | None:
        """Return the client that something was granted to, as far as it is known."""
        for known in self._clients:
            if known.id == grant.client_id and known.issuer in (None, server.issuer):
                return known
        if grant.client_id == self._document:
            return KnownClient(grant.client_id)
        kept = registration.load(server.issuer, await settings.store.load(self._key(server)))
        return kept if kept is not None and kept.id == grant.client_id else None

    async def obtain(self, wanted: TokenRequest, endpoints: Endpoints, settings: Settings) -> Grant:
        """Have the user log in.

        Raises:
            AuthorizationError: The user must not be asked, or does not grant access; or the servers cannot be used.
        """
        login, server = self._login, wanted.server
        if login is None:
            raise AuthorizationError(
                f"{wanted.resource} wants a login at {server.issuer}, and nobody may be asked here"
            )
        for is_last in (False, True):
            try:
                if server.device_endpoint is not None and hasattr(login, "show_device"):
                    return await self._by_device(login, wanted, endpoints, settings)  # type: ignore[arg-type]
                return await self._by_redirect(login, wanted, endpoints, settings)
            except TokenRefused as error:
                if error.error != "invalid_client" or is_last or not await self._unregister(server, settings):
                    raise
                log.info("%s has forgotten this client, which registers again", server.issuer)
        raise AssertionError

    async def _by_redirect(self, login: Login, wanted: TokenRequest, endpoints: Endpoints, settings: Settings) -> Grant:
        server = wanted.server
        preferred = await self._redirect_uri(server, settings)
        async with AsyncExitStack() as stack:
            redirect = await stack.enter_async_context(login.redirect(preferred))
            check_redirect(redirect.uri)
            client = await self._identify(wanted, redirect.uri, endpoints, settings)
            if client.redirect_uri not in (None, redirect.uri):
                raise AuthorizationError(
                    f"client {client.id} comes back to {client.redirect_uri}, and the login to {redirect.uri}; "
                    "Browser(port, path, host) says where"
                )
            request = AuthorizationRequest.new(
                server,
                client.id,
                redirect.uri,
                resource=None if wanted.quirks.omit_resource else wanted.resource,
                scopes=wanted.scopes,
                assume_pkce=wanted.quirks.assume_pkce,
                key=wanted.key.thumbprint if wanted.key is not None else None,
                more=self._parameters,
            )
            code = request.code(await redirect.visit(request.url, request.is_ours))
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
        }
        if not wanted.quirks.omit_resource:
            form["resource"] = wanted.resource
        return wanted.grant(await endpoints.token(server, client, form, wanted.key), client)

    async def _by_device(
        self, login: DeviceLogin, wanted: TokenRequest, endpoints: Endpoints, settings: Settings
    ) -> Grant:
        """Log in on another device (RFC 8628)."""
        server = wanted.server
        client = await self._identify(wanted, None, endpoints, settings)
        told = await endpoints.device(server, client, wanted.fields)
        code, secret, pause = device_code(told)
        await login.show_device(code)
        form = {"grant_type": registration.DEVICE_GRANT, "device_code": secret}
        if not wanted.quirks.omit_resource:
            form["resource"] = wanted.resource
        with anyio.move_on_after(code.seconds):
            while True:
                await anyio.sleep(pause)
                try:
                    return wanted.grant(await endpoints.token(server, client, form, wanted.key), client)
                except TokenRefused as error:
                    if error.error == "slow_down":
                        pause += 5.0
                    elif error.error != "authorization_pending":
                        raise
                except AuthorizationError as error:
                    if not error.is_temporary:
                        raise
        raise AuthorizationError(f"nobody logged in within {code.seconds:g} seconds")

    # --- who we are -------------------------------------------------------------------------------------------

    async def _identify(
        self, wanted: TokenRequest, redirect_uri: str | None, endpoints: Endpoints, settings: Settings
    ) -> KnownClient:
        """Choose how to be known (MCP 2026-07-28, "Client Registration"): the first way of four that there is."""
        server = wanted.server
        known = self._known(server)
        if known is not None:
            await self._bind(known, server, settings)
            return known
        if self._document is not None and server.takes_documents:
            return KnownClient(self._document)
        if server.registration_endpoint is not None:
            return await self._register(wanted, redirect_uri, endpoints, settings)
        if self._ask_client is not None:
            return await self._ask_client(server.issuer, redirect_uri or "")
        raise AuthorizationError(
            f"{server.issuer} lets no client register itself; register one there, "
            f"for which users come back to {redirect_uri}, and name it: OAuth(KnownClient(id))"
        )

    def _known(self, server: ServerMetadata) -> KnownClient | None:
        exact = [one for one in self._clients if one.issuer == server.issuer]
        return next(iter([*exact, *(one for one in self._clients if one.issuer is None)]), None)

    async def _bind(self, known: KnownClient, server: ServerMetadata, settings: Settings) -> None:
        """Hold a client without an issuer to the first one that it was used with."""
        if known.issuer is not None:
            return
        key = Key("", "", known.id)
        kept = await settings.store.load(key)
        first = (kept or {}).get("issuer")
        while first is None:  # another process may be the first
            await settings.store.replace(key, kept, {"issuer": server.issuer})
            kept = await settings.store.load(key)
            first = (kept or {}).get("issuer")
        if first != server.issuer:
            raise AuthorizationError(
                f"client {known.id} is known to {first}, and the server names {server.issuer} now; if that is right, "
                "say so: KnownClient(id, issuer)"
            )

    async def _redirect_uri(self, server: ServerMetadata, settings: Settings) -> str | None:
        known = self._known(server)
        if known is None:
            known = registration.load(server.issuer, await settings.store.load(self._key(server)))
        return known.redirect_uri if known is not None else None

    async def _register(
        self, wanted: TokenRequest, redirect_uri: str | None, endpoints: Endpoints, settings: Settings
    ) -> KnownClient:
        """Register the client, unless it is registered for the same address (RFC 7591)."""
        server, key = wanted.server, self._key(wanted.server)
        kept = await settings.store.load(key)
        known = registration.load(server.issuer, kept)
        if known is not None and known.redirect_uri == redirect_uri:
            return known
        asked = registration.registration(server, self._client_name, redirect_uri)
        fetched = await endpoints.register(server, asked)
        if not fetched.is_success or fetched.object is None:
            raise registration.rejection(server, fetched.status, fetched.object)
        method = asked["token_endpoint_auth_method"]
        client, until = registration.registered(server, fetched.object, redirect_uri, method)
        await settings.store.replace(key, kept, registration.dump(client, until))
        return client

    async def _unregister(self, server: ServerMetadata, settings: Settings) -> bool:
        """Forget a registration that the authorization server has forgotten; tell whether there was one."""
        key = self._key(server)
        kept = await settings.store.load(key)
        return kept is not None and await settings.store.replace(key, kept, None)

    def _key(self, server: ServerMetadata) -> Key:
        return Key(server.issuer, "", self._client_name)
