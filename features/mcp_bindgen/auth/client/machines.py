"""Get tokens for programs, without a user who logs in: the extensions of MCP for that.

`io.modelcontextprotocol/oauth-client-credentials`, `.../enterprise-managed-authorization`, `.../auth/wif`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Unpack

from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..metadata import ServerMetadata
from ..store import MemoryStore
from .authorizer import ServerAuthorizer
from .clients import ASSERTION, ClientSecret, Credentials, KnownClient, PrivateKey, assertion
from .discovery import find_server
from .grants import ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN_EXCHANGE, Grant
from .source import Options, Settings, TokenRequest, TokenSource, settings
from .token_endpoint import Endpoints

Secret = str | Callable[[], str | Awaitable[str]]
"""A token that somebody else issued, or what returns one that is fresh."""


class _Machine:
    """A way to get tokens without asking anybody. It is an `Auth` and a `TokenSource`.

    Args:
        client: Who it is for the authorization server of the resource.
        extension: The extension of the protocol that it is.
        options: Those of all ways.
    """

    asks = opens_logins = False

    def __init__(self, client: KnownClient, extension: str, **options: Unpack[Options]) -> None:
        self._client = client
        self.name = client.id
        self.extensions: Mapping[str, Any] = {extension: {}}
        self.issuers = frozenset([client.issuer] if client.issuer is not None else [])
        self._settings = settings(options, MemoryStore())
        self._authorizers: dict[str, ServerAuthorizer] = {}
        self._first: str | None = None

    def authorizer(self, url: str) -> ServerAuthorizer:
        """Return what authorizes requests to a server."""
        if url not in self._authorizers:
            source: TokenSource = self
            self._authorizers[url] = ServerAuthorizer(url, source, self._settings)
        return self._authorizers[url]

    async def client(self, grant: Grant, server: ServerMetadata, settings: Settings) -> KnownClient | None:
        """Return the client."""
        return self._client

    async def obtain(self, wanted: TokenRequest, endpoints: Endpoints, settings: Settings) -> Grant:
        """Get a token."""
        if isinstance(self._client, ClientSecret) and self._client.issuer is None:
            first = self._first = self._first or wanted.server.issuer
            if first != wanted.server.issuer:
                raise AuthorizationError(
                    f"client {self._client.id} is known to {first}, and the server names {wanted.server.issuer} now; "
                    "name the issuer of the client if that is right"
                )
        form = {**await self._form(wanted, endpoints), **wanted.fields}
        return wanted.grant(await endpoints.token(wanted.server, self._client, form, wanted.key), self._client)

    async def _form(self, wanted: TokenRequest, endpoints: Endpoints) -> dict[str, str]:
        raise NotImplementedError


class ClientCredentials(_Machine):
    """Be authorized as a program (OAuth 2.1, section 4.2).

    Args:
        client: The program: `ClientSecret(...)` or `PrivateKeyJwt(...)`. Name its issuer, else its secret goes to
            the authorization server that the resource names first, and to no other one afterwards.
        options: Those of all ways; tokens are kept only as long as the process lives, because it can get others.
    """

    def __init__(self, client: KnownClient, **options: Unpack[Options]) -> None:
        super().__init__(client, "io.modelcontextprotocol/oauth-client-credentials", **options)

    async def _form(self, wanted: TokenRequest, endpoints: Endpoints) -> dict[str, str]:
        return {"grant_type": "client_credentials"}


@dataclass(frozen=True)
class PrivateKeyJwt(KnownClient):
    """A client that signs who it is, for one authorization server at a time: the audience is its issuer (RFC 7523).

    It is an `Auth` by itself, which is `ClientCredentials` of it, with the defaults of all options.

    Attributes:
        key: The private key: PEM, or a JSON Web Key.
        algorithm: What to sign with; by default what fits the key.
        key_id: The identifier of the key, if the authorization server knows several.
    """

    key: PrivateKey = field(default="", repr=False)
    algorithm: str | None = None
    key_id: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return a signed assertion."""
        signed = assertion(self.id, server.issuer, self.key, self.algorithm, self.key_id)
        return Credentials({"client_id": self.id, "client_assertion_type": ASSERTION, "client_assertion": signed})

    def authorizer(self, url: str) -> ServerAuthorizer:
        """Return what authorizes requests to a server by client credentials."""
        return self._alone.authorizer(url)

    @cached_property
    def _alone(self) -> ClientCredentials:
        return ClientCredentials(self)


class WorkloadIdentity(_Machine):
    """Be authorized by the identity that the platform gives a workload (RFC 7523, section 2.1).

    A refusal is final for the request: neither is it asked again nor another way tried.

    Args:
        token: The workload's token, or what returns one; its audience must be the authorization server.
        client: The client, if the authorization server wants to know.
        options: Those of all ways.
    """

    def __init__(self, token: Secret, client: KnownClient | None = None, **options: Unpack[Options]) -> None:
        super().__init__(client or KnownClient(""), "io.modelcontextprotocol/auth/wif", **options)
        self._token = token

    async def _form(self, wanted: TokenRequest, endpoints: Endpoints) -> dict[str, str]:
        return {"grant_type": JWT_BEARER, "assertion": await _value(self._token)}


class EnterpriseManaged(_Machine):
    """Be authorized by the identity provider of an enterprise, which decides for its users.

    The user's ID token is exchanged there for an assertion to the authorization server of the resource (RFC 8693),
    which issues an access token for that (RFC 7523).

    Args:
        id_token: The user's ID token, or what returns one.
        provider: The issuer of the identity provider.
        provider_client: The client there.
        client: The client of the resource's authorization server.
        token_type: What `id_token` is, if it is something else.
        options: Those of all ways.
    """

    def __init__(
        self,
        id_token: Secret,
        provider: str,
        provider_client: KnownClient,
        client: KnownClient,
        *,
        token_type: str = ID_TOKEN,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(client, "io.modelcontextprotocol/enterprise-managed-authorization", **options)
        self._id_token = id_token
        self._provider = provider
        self._provider_client = provider_client
        self._type = token_type

    async def _form(self, wanted: TokenRequest, endpoints: Endpoints) -> dict[str, str]:
        provider = await find_server(endpoints.fetcher, self._provider)
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": wanted.server.issuer,
            "resource": wanted.resource,
            "subject_token": await _value(self._id_token),
            "subject_token_type": self._type,
        }
        if wanted.scopes:
            form["scope"] = " ".join(wanted.scopes)
        answer = await endpoints.token(provider, self._provider_client, form)
        assertion = answer.get("access_token")
        if answer.get("issued_token_type") != ID_JAG or not isinstance(assertion, str):
            raise AuthorizationError(f"{provider.issuer} issued something else than an assertion of an identity")
        return {"grant_type": JWT_BEARER, "assertion": assertion}


async def _value(secret: Secret) -> str:
    found = secret if isinstance(secret, str) else secret()
    return await found if inspect.isawaitable(found) else found
