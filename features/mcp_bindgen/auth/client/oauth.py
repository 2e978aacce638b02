"""Logins of users: `connect(url, auth=OAuth())`.

MCP 2026-07-28, "Authorization Flow Steps"; OAuth 2.1, section 4.1; RFC 8628.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Unpack

import anyio

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..keyring_store import default_store
from ..metadata import ServerMetadata
from ..store import Key, put
from .authorizer import TokenSource
from .clients import DEVICE_GRANT, ClientSecret, KnownClient, is_document_url, load_client, register
from .login import AuthorizationRequest, Browser, DeviceLogin, Login, device_code
from .tokens import Grant, Options, TokenRefused, TokenRequest

AskClient = Callable[[str, str], Awaitable[KnownClient]]
"""Asks the user for a client: issuer of the authorization server, redirect URI -> client."""

_NO_DEVICES = ("unauthorized_client", "unsupported_grant_type")  # the server has device codes for other clients
_SLOW_DOWN_SECONDS = 5.0  # more between two polls (RFC 8628, section 3.5)


class OAuth(TokenSource):
    """Log a user in where a server requires it, and store the tokens. It is an `Auth`.

    One object serves any number of servers and connections.

    Args:
        client: Client that is registered with an authorization server, or one client for each server. Otherwise the
            client is identified by `client_metadata_url`, or registers itself.
        client_metadata_url: URL of the published metadata document of the client (`client_metadata` writes it).
        client_name: Name for users when the client registers itself.
        login: Way to log in: `Browser()`, `Headless()`, or `Manual(...)`; `None` to use stored tokens only.
        ask_client: Asks the user for a client if there is no other way; the answer is stored after the login.
        parameters: Further parameters of the authorization request.
        options: Options of all sources (`Options`); the default store is the keyring, or files without a keyring.

    Raises:
        ValueError: The options contradict each other.
    """

    is_interactive = True

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
        issuers = [one.issuer for one in clients]
        if len(set(issuers)) < len(clients):
            raise ValueError("clients must name different issuers")
        if client_metadata_url is not None and not is_document_url(client_metadata_url):
            raise ValueError("client_metadata_url must be an https URL with a path")
        name = clients[0].id if len(clients) == 1 else client_metadata_url or client_name
        super().__init__(name, () if None in issuers else issuers, default_store, options)
        self.has_login: bool = login is not None and login.is_enabled
        self._clients, self._document_url, self._client_name = clients, client_metadata_url, client_name
        self._login, self._ask_client = login, ask_client
        self._asked: list[KnownClient] = []
        self._parameters = parameters or {}

    async def logout(self, url: str) -> None:
        """Revoke and delete the tokens for a server.

        Raises:
            AuthorizationError: The tokens are deleted, but could not be revoked.
        """
        await self.authorizer(url).forget()

    async def obtain(self, request: TokenRequest) -> Grant:
        """Have the user log in.

        Raises:
            AuthorizationError: No login is possible, the user refuses access, or the servers cannot be used.
        """
        login, server = self._login, request.server
        if login is None:
            raise AuthorizationError(f"{request.resource} requires a login at {server.issuer}; no user may be asked")
        for is_last in (False, True):
            try:
                if server.device_authorization_endpoint is not None and isinstance(login, DeviceLogin):
                    try:
                        return await self._by_device(login, server.device_authorization_endpoint, request)
                    except TokenRefused as error:
                        if error.error not in _NO_DEVICES:
                            raise
                        log.info("this client may not log in on another device: %s", error)
                return await self._by_redirect(login, request)
            except TokenRefused as error:
                client = self._known(server) or await self._registered(server)
                if is_last or client is None or not await self.note_refusal(error, client, server):
                    raise
        raise AssertionError

    async def _by_redirect(self, login: Login, request: TokenRequest) -> Grant:
        server = request.server
        known = self._known(server) or await self._registered(server)
        async with login.redirect(None if known is None else known.redirect_uri) as redirect:
            client = await self._identify(request, redirect.uri)
            if client.redirect_uri not in (None, redirect.uri):
                raise AuthorizationError(
                    f"client {client.id} returns to {client.redirect_uri}, and the login to {redirect.uri}; "
                    "set Browser(port, path, host)"
                )
            visit = AuthorizationRequest.new(request, client.id, redirect.uri, self._parameters)
            code = visit.code(await redirect.visit(visit.url, visit.is_response))
        form = {"grant_type": "authorization_code", "code": code}
        form |= {"redirect_uri": visit.redirect_uri, "code_verifier": visit.verifier}
        return await self._send(request, client, form)

    async def _by_device(self, login: DeviceLogin, endpoint: str, request: TokenRequest) -> Grant:
        """Log in on another device (RFC 8628)."""
        try:
            client = await self._identify(request, None)
        except AuthorizationError as error:  # the server may know only clients with a redirect URI
            raise TokenRefused(str(error), _NO_DEVICES[0]) from None
        answer = await request.endpoints.post(request.server, endpoint, client, request.fields)
        code, secret, pause = device_code(answer)
        await login.show_device(code)
        with anyio.move_on_after(code.seconds):
            while True:
                await anyio.sleep(pause)
                try:
                    return await self._send(request, client, {"grant_type": DEVICE_GRANT, "device_code": secret})
                except TokenRefused as error:
                    if error.error == "slow_down":
                        pause += _SLOW_DOWN_SECONDS
                    elif error.error != "authorization_pending":
                        raise
                except AuthorizationError as error:
                    if not error.is_temporary:
                        raise
        raise AuthorizationError(f"nobody logged in within {code.seconds:g} seconds")

    async def _send(self, request: TokenRequest, client: KnownClient, form: Mapping[str, str]) -> Grant:
        """Send a form to the token endpoint; store a client that the user has named once the server knows it."""
        grant = await request.send(client, form)
        if client in self._asked and type(client) in (KnownClient, ClientSecret):  # no private key is stored
            record = {**asdict(client), "redirect_uri": form.get("redirect_uri")}
            await put(self.store, Key(request.server.issuer, "", self._client_name), record)
        return grant

    # --- client -----------------------------------------------------------------------------------------------

    async def client_of(self, grant: Grant, server: ServerMetadata) -> KnownClient | None:
        """Return the client of a grant; `None` if it is no longer known."""
        for known in (*self._clients, *reversed(self._asked)):
            if known.id == grant.client_id and known.issuer in (None, server.issuer):
                return known
        if grant.client_id == self._document_url:
            return KnownClient(grant.client_id)
        for name in (grant.client_id, self._client_name):
            registered = await self._registered(server, name)
            if registered is not None and registered.id == grant.client_id:
                return registered
        return None

    async def _identify(self, request: TokenRequest, redirect_uri: str | None) -> KnownClient:
        """Return the client by the first available way of MCP 2026-07-28, "Client Registration"."""
        server = request.server
        known = self._known(server)
        if known is not None:
            await self.bind(known, server)
            return known
        if self._document_url is not None and server.client_id_metadata_document_supported:
            return KnownClient(self._document_url)
        stored = await self._registered(server)
        if stored is not None and stored.redirect_uri == redirect_uri:
            return stored
        if server.registration_endpoint is not None:
            return await self._register(request, server.registration_endpoint, redirect_uri)
        if self._ask_client is not None:
            asked = replace(await self._ask_client(server.issuer, redirect_uri or ""), issuer=server.issuer)
            self._asked.append(asked)
            return asked
        raise AuthorizationError(
            f"{server.issuer} lets no client register itself; register a client there "
            f"with the redirect URI {redirect_uri}, and name it: OAuth(KnownClient(id))"
        )

    def _known(self, server: ServerMetadata) -> KnownClient | None:
        exact = [one for one in self._clients if one.issuer == server.issuer]
        return next(iter([*exact, *(one for one in self._clients if one.issuer is None)]), None)

    async def _register(self, request: TokenRequest, endpoint: str, redirect_uri: str | None) -> KnownClient:
        """Register the client, also if it is registered for another redirect URI (RFC 7591)."""
        server, key = request.server, Key(request.server.issuer, "", self._client_name)
        before = await self.store.load(key)
        known = load_client(server.issuer, before)
        record = await register(request.endpoints.fetcher, endpoint, server, self._client_name, redirect_uri)
        if known is not None:  # its tokens may still be in use
            await put(self.store, Key(server.issuer, "", known.id), before)
        if not await self.store.replace(key, before, record):  # another login was first
            await put(self.store, Key(server.issuer, "", record["id"]), record)
        client = load_client(server.issuer, record)
        if client is None:
            raise AuthorizationError(f"{server.issuer} issued a client secret that has expired")
        return client

    async def _registered(self, server: ServerMetadata, name: str | None = None) -> KnownClient | None:
        """Return a replaced client by its identifier; without it, the current client."""
        return load_client(server.issuer, await self.store.load(Key(server.issuer, "", name or self._client_name)))

    async def note_refusal(self, error: TokenRefused, client: KnownClient, server: ServerMetadata) -> bool:
        """Forget a registration that the server does not know any more; return True if there was one."""
        if error.error != "invalid_client":
            return False
        is_gone = False
        for name in (client.id, self._client_name):
            key = Key(server.issuer, "", name)
            record = await self.store.load(key)
            if record is not None and record.get("id") == client.id:
                is_gone |= await self.store.replace(key, record, None)
        if is_gone:
            log.info("%s does not know this client any more; the client registers again", server.issuer)
        return is_gone
