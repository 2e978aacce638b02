"""Say how tokens are to be got: what users state, what is wanted, and the ways that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from ..dpop import ProofKey
from ..fetch import Fetcher
from ..metadata import ServerMetadata
from ..store import Store
from .clients import KnownClient
from .grants import Grant, granted
from .token_endpoint import Endpoints


@dataclass(frozen=True)
class ServerQuirks:
    """Name what one authorization server does differently than the specification, to use it all the same.

    Attributes:
        omit_resource: It refuses to be told what a token is for, so the token may be good elsewhere, too.
        assume_pkce: It protects codes by PKCE without saying so.
    """

    omit_resource: bool = False
    assume_pkce: bool = False


@dataclass(frozen=True)
class Settings:
    """Hold what all ways of getting tokens have in common.

    Attributes:
        store: Keeps tokens and registrations.
        fetcher: Fetches metadata and tokens.
        scopes: What to ask for; by default what servers say.
        limit: What must not be exceeded by what servers want; `None` for no limit.
        dpop: Whether to bind tokens to a key: always, never, or, with `None`, where both servers can.
        quirks: Issuer -> what it does differently.
    """

    store: Store = field(repr=False)
    fetcher: Fetcher = field(default_factory=Fetcher)
    scopes: tuple[str, ...] | None = None
    limit: frozenset[str] | None = None
    dpop: bool | None = None
    quirks: Mapping[str, ServerQuirks] = field(default_factory=dict[str, ServerQuirks])


class Options(TypedDict, total=False):
    """State what all ways of getting tokens have in common.

    Attributes:
        scopes: What to ask for in place of what servers say.
        limit: The scopes that servers may want at most.
        store: Keeps tokens and registrations.
        fetcher: Reaches authorization servers: certificates, proxies, and which hosts in a network may be asked.
        dpop: Whether tokens are bound to a key: always, never, or with `None` where both servers can.
        quirks: Issuer -> what it does differently than the specification, for example Microsoft Entra.
    """

    scopes: Iterable[str] | None
    limit: Iterable[str] | None
    store: Store | None
    fetcher: Fetcher | None
    dpop: bool | None
    quirks: Mapping[str, ServerQuirks]


def settings(options: Options, store: Store) -> Settings:
    """Return the settings that options state, with a store for those that name none."""
    scopes, limit = options.get("scopes"), options.get("limit")
    return Settings(
        store=options.get("store") or store,
        fetcher=options.get("fetcher") or Fetcher(),
        scopes=None if scopes is None else tuple(scopes),
        limit=None if limit is None else frozenset(limit),
        dpop=options.get("dpop"),
        quirks=options.get("quirks", {}),
    )


@dataclass(frozen=True)
class TokenRequest:
    """A token that is wanted.

    Attributes:
        server: Whose.
        resource: What for.
        scopes: With which scopes.
        key: The key to bind it to, if it shall be bound.
        must_bind: Whether it is of no use otherwise.
        quirks: What the server does differently.
    """

    server: ServerMetadata
    resource: str
    scopes: tuple[str, ...]
    key: ProofKey | None
    must_bind: bool
    quirks: ServerQuirks

    @property
    def fields(self) -> dict[str, str]:
        """The resource and the scopes, as they stand in a form."""
        found = {} if self.quirks.omit_resource else {"resource": self.resource}
        return found | ({"scope": " ".join(self.scopes)} if self.scopes else {})

    def grant(self, document: Mapping[str, Any], client: KnownClient) -> Grant:
        """Return what a token endpoint granted a client; raise `AuthorizationError`."""
        return granted(
            self.server,
            document,
            resource=self.resource,
            client_id=client.id,
            scopes=self.scopes,
            key=None if self.key is None else self.key.dump(),
            must_bind=self.must_bind,
        )


class TokenSource(Protocol):
    """A way to get tokens."""

    @property
    def name(self) -> str:
        """Name what tokens are kept under, with issuer and resource."""
        ...

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions of the protocol that it is, if it is one."""
        ...

    @property
    def asks(self) -> bool:
        """Tell whether it asks a person."""
        ...

    @property
    def opens_logins(self) -> bool:
        """Tell whether it asks a person now, and not only could."""
        ...

    @property
    def issuers(self) -> frozenset[str]:
        """The authorization servers that it is good for; none for any."""
        ...

    async def obtain(self, wanted: TokenRequest, endpoints: Endpoints, settings: Settings) -> Grant:
        """Get a token.

        Raises:
            AuthorizationError: There is none to be had.
        """
        ...

    async def client(self, grant: Grant, server: ServerMetadata, settings: Settings) -> KnownClient | None:
        """Return the client that something was granted to, to refresh or revoke it; `None` if it is unknown now."""
        ...
