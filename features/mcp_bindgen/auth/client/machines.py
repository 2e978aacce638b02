"""Tokens for programs, without a login: a token that the program has already, and three extensions of MCP.

`io.modelcontextprotocol/oauth-client-credentials`, `.../enterprise-managed-authorization`, `.../auth/wif`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Unpack
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import Key, import_key

from mcp_bindgen.runtime.concurrency import resolved
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.runtime.protocol.transport import AskUser

from ..metadata import ServerMetadata, check_confidential, check_same_origin
from ..store import MemoryStore
from .authorizer import ServerAuthorizer, TokenSource
from .clients import ClientSecret, Credentials, KnownClient
from .tokens import ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN, TOKEN_EXCHANGE, Grant, Options, TokenRequest

Secret = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that returns a fresh one."""


class Bearer:
    """Send a token with each request to a server, and to no other server. It is an `Auth`.

    Args:
        token: The token; or a function that returns it, which is called again when the server refuses the token.
    """

    def __init__(self, token: Secret) -> None:
        self._token = token
        self._authorizers: dict[str, _Authorizer] = {}

    def authorizer(self, url: str) -> _Authorizer:
        """Return the authorizer of the requests to a server.

        Raises:
            AuthorizationError: The connection would not be encrypted.
        """
        check_confidential(url)
        return self._authorizers.setdefault(url, _Authorizer(self._token, url))


class _Authorizer:
    """Authorizer of the requests to one server. It is an `Authorizer`."""

    extensions: Mapping[str, Any] = {}

    def __init__(self, token: Secret, url: str) -> None:
        self.url = url
        self.token: str | None = None
        self._secret = token

    def attempt(self, ask_user: AskUser | None) -> _Attempt:
        return _Attempt(self)

    async def fetch(self, refused: str | None) -> str:
        """Return the token; a new token, if possible, in place of the refused token."""
        if self.token is None or self.token == refused:
            self.token = await read_secret(self._secret)
        if TOKEN.fullmatch(self.token) is None:
            raise AuthorizationError("the token has characters that cannot stand in a header")
        return self.token


class _Attempt:
    """A request, sent twice if there is a new token the second time. It is an `Attempt`."""

    def __init__(self, authorizer: _Authorizer) -> None:
        self._authorizer = authorizer
        self._sent: str | None = None
        self._is_second = False

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        check_same_origin(url, self._authorizer.url)
        self._sent = await self._authorizer.fetch(None)
        return {"authorization": f"Bearer {self._sent}"}

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        if status != 401 or self._is_second:
            return False
        self._is_second = True
        return await self._authorizer.fetch(self._sent) != self._sent


async def read_secret(secret: Secret) -> str:
    """Return a secret, from its function if it has one."""
    return await resolved(secret if isinstance(secret, str) else secret())


PrivateKey = str | bytes | Mapping[str, Any]
"""A private key: PEM, or a JSON Web Key."""

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_LIFETIME = 120  # seconds
_ALGORITHMS = {"RSA": "RS256", "OKP": "Ed25519"}
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


class _Machine(TokenSource):
    """Base class of the ways to get tokens without a user.

    Tokens are stored in memory by default, because the program can get new ones.

    Args:
        client: Client of the resource's authorization server.
        extension: Extension of MCP.
        options: Options of all sources.
    """

    def __init__(self, client: KnownClient, extension: str, options: Options) -> None:
        super().__init__(client.id, [client.issuer], MemoryStore, options)
        self.extensions: Mapping[str, Any] = {extension: {}}
        self._client = client

    async def client_of(self, grant: Grant, server: ServerMetadata) -> KnownClient | None:
        """Return the client."""
        return self._client

    async def obtain(self, request: TokenRequest) -> Grant:
        """Get a token."""
        if isinstance(self._client, ClientSecret):
            await self.bind(self._client, request.server)
        return await request.send(self._client, {**await self._form(request), **request.fields})

    async def _form(self, request: TokenRequest) -> dict[str, str]:
        raise NotImplementedError


class ClientCredentials(_Machine):
    """Authorize a program by its own credentials (OAuth 2.1, section 4.2).

    Args:
        client: The program: `ClientSecret(...)` or `PrivateKeyJwt(...)`. Name its issuer; otherwise its secret goes to
            the first authorization server that the resource names, and to no other server afterwards.
        options: Options of all sources.
    """

    def __init__(self, client: KnownClient, **options: Unpack[Options]) -> None:
        super().__init__(client, "io.modelcontextprotocol/oauth-client-credentials", options)

    async def _form(self, request: TokenRequest) -> dict[str, str]:
        return {"grant_type": "client_credentials"}


@dataclass(frozen=True)
class PrivateKeyJwt(KnownClient):
    """A client that authenticates by signed assertions, each for one issuer (RFC 7523).

    It is also an `Auth`: `ClientCredentials` of this client with default options.

    Attributes:
        key: The private key: PEM, or a JSON Web Key.
        algorithm: Signature algorithm; by default the usual one for the key.
        key_id: Identifier of the key, if the authorization server knows several.
    """

    key: PrivateKey = field(default="", repr=False)
    algorithm: str | None = None
    key_id: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return a fresh assertion for the issuer (RFC 7523, section 3).

        Raises:
            AuthorizationError: The key cannot sign.
        """
        now = int(time.time())
        claims = {"iss": self.id, "sub": self.id, "aud": server.issuer, "iat": now, "exp": now + _ASSERTION_LIFETIME}
        try:
            key = import_key(dict(self.key)) if isinstance(self.key, Mapping) else _from_pem(self.key)
            algorithm = self.algorithm or _CURVES.get(str(key.get("crv"))) or _ALGORITHMS[key.key_type]
            header = {"alg": algorithm, **({"kid": self.key_id} if self.key_id else {})}
            signed = jwt.encode(header, {**claims, "jti": uuid4().hex}, key, algorithms=[algorithm])
        except Exception as error:
            problem = type(error).__name__
            raise AuthorizationError(f"the private key of client {self.id} cannot sign: {problem}") from None
        return Credentials({"client_id": self.id, "client_assertion_type": _ASSERTION, "client_assertion": signed})

    def authorizer(self, url: str) -> ServerAuthorizer:
        """Return the authorizer of the requests to a server, by client credentials."""
        return self._source.authorizer(url)

    @cached_property
    def _source(self) -> ClientCredentials:
        return ClientCredentials(self)


class WorkloadIdentity(_Machine):
    """Authorize a workload by the token of its platform (RFC 7523, section 2.1).

    A refusal is final for the request.

    Args:
        token: Token of the workload, or a function that returns it; its audience must be the authorization server.
        client: The client, if the authorization server requires one. Name its issuer, as in `KnownClient("", issuer)`;
            otherwise the token goes to the first authorization server that the resource names, and to no other server
            afterwards.
        options: Options of all sources.
    """

    def __init__(self, token: Secret, client: KnownClient | None = None, **options: Unpack[Options]) -> None:
        super().__init__(client or KnownClient(""), "io.modelcontextprotocol/auth/wif", options)
        self._token = token

    async def _form(self, request: TokenRequest) -> dict[str, str]:
        await self.bind(self._client, request.server)
        return {"grant_type": JWT_BEARER, "assertion": await read_secret(self._token)}


class EnterpriseManaged(_Machine):
    """Authorize a user by the identity provider of an enterprise.

    The provider exchanges the ID token of the user for an assertion (RFC 8693); the authorization server of the
    resource exchanges the assertion for an access token (RFC 7523).

    Args:
        id_token: ID token of the user, or a function that returns it.
        provider: Issuer of the identity provider.
        provider_client: Client of the identity provider.
        client: Client of the resource's authorization server.
        token_type: Type of `id_token`, if it is no ID token.
        options: Options of all sources.
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
        super().__init__(client, "io.modelcontextprotocol/enterprise-managed-authorization", options)
        self.providers: Sequence[str] = [provider]
        self._id_token, self._provider, self._provider_client = id_token, provider, provider_client
        self._token_type = token_type

    async def _form(self, request: TokenRequest) -> dict[str, str]:
        provider = await self.find_server(request.endpoints.fetcher, self._provider)
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": request.server.issuer,
            "subject_token": await read_secret(self._id_token),
            "subject_token_type": self._token_type,
            **request.fields,
            "resource": request.resource,
        }
        answer = await request.endpoints.post(provider, provider.token_endpoint, self._provider_client, form)
        assertion = answer.get("access_token")
        if answer.get("issued_token_type") != ID_JAG or not isinstance(assertion, str):
            raise AuthorizationError(f"{provider.issuer} issued no assertion of an identity")
        return {"grant_type": JWT_BEARER, "assertion": assertion}


def _from_pem(text: str | bytes) -> Key:
    """Return the key in a PEM text, of any type."""
    for key_type in ("EC", "RSA"):
        with suppress(Exception):
            return import_key(text, key_type)
    return import_key(text, "OKP")
