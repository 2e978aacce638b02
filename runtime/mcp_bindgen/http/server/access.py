"""Access control of HTTP endpoints: policies, and the operations that need scopes (MCP, "Authorization")."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias, cast

from mcp_bindgen.runtime.model.base import optional, wire_fields
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.access import Identity, InsufficientScope, Operation, followed_by, report_refusal
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_bindgen.runtime.protocol.events import Event, Notified, Requested
from mcp_bindgen.runtime.protocol.methods import COMPLETE, LISTEN, SUBSCRIBE, Method
from mcp_bindgen.runtime.protocol.uris import MAX_URI_CHARACTERS, canonical
from mcp_bindgen.runtime.session.endpoint import Endpoint, original
from mcp_bindgen.runtime.session.server import Server

from .limits import Turn

Scopes: TypeAlias = (
    Mapping[str, Collection[str]]
    | Mapping[tuple[str, str], Collection[str]]
    | Mapping[str | tuple[str, str], Collection[str]]
    | Mapping[Sequence[str], Collection[str]]  # which mypy infers for a literal with both kinds of keys
)
"""Method, or method and name -> the scopes that it needs; `*` stands for every request."""


class HttpRequest(Protocol):
    """The part of an HTTP request that authentication reads.

    Attributes:
        scope: Its ASGI scope.
        headers: Its headers, names in lower case; repeated headers are joined by commas.
    """

    scope: MutableMapping[str, Any]
    headers: dict[bytes, bytes]


class AccessPolicy(Protocol):
    """Access policy of an HTTP endpoint, such as `mcp_bindgen.auth.ResourceServer`.

    Attributes:
        metadata_path: Path of its metadata; `None` if it has none.
    """

    metadata_path: str | None

    def metadata(self) -> bytes:
        """Return the metadata of the protected resource, as JSON text (RFC 9728)."""
        ...

    async def authenticate(self, request: HttpRequest) -> Identity:
        """Return the identity of the sender of a request; raises `HttpError`."""
        ...

    def needed(self, operation: Operation) -> frozenset[str]:
        """Return the scopes that an operation needs."""
        ...

    def challenge(self, missing: InsufficientScope) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers of a refusal that name the required scopes."""
        ...


def check(identity: Identity | None, needed: Collection[str], operations: Sequence[Operation]) -> None:
    """Check that an identity has the scopes of its operations.

    Raises:
        InsufficientScope: It lacks something; with all that they need.
    """
    if needed and (identity is None or not identity.scopes.issuperset(needed)):
        named = ", ".join(method if name is None else f"{method} {name!r}" for method, name in operations)
        report_refusal(identity, "insufficient scope", f"{named} needs {' '.join(sorted(needed))}")
        raise InsufficientScope(sorted(needed))


def operations(method: Method, params: Any) -> list[Operation]:
    """Return the operations of a message, given its typed params; see `operations_named`.

    A method of an extension is called on the name in its headers. A request that listens asks to subscribe to
    each resource that its filter names.

    Raises:
        ProtocolError: A filter names too many resources.
    """
    if method.name == LISTEN:
        uris = followed_by(params.notifications)
        subscribed = [one for uri in dict.fromkeys(uris) for one in operations_named(SUBSCRIBE, {"uri": uri})]
        return [(method.name, None), *subscribed]
    if method.extension is None or method.named_by is None:
        return operations_named(method.name, params)
    return [(method.name, getattr(params, method.named_by))]


def operations_named(method: str, params: object) -> list[Operation]:
    """Return the operations of a message: with a name and a URI both, because only one of the two has a meaning.

    A URI is returned in its canonical form, and as it was sent where that differs. A completion asks for the entry that
    its reference names.

    Args:
        method: Its method.
        params: Its params, typed or in wire form.

    Raises:
        ProtocolError: The URI is too long (-32602).
    """
    if method == COMPLETE:
        params = params.get("ref") if is_object(params) else optional(params, "ref")
    name: Any
    uri: Any
    if is_object(params):
        name, uri = params.get("name"), params.get("uri")
    else:
        named, addressed = _naming_attributes(cast(Hashable, type(params)))
        more: Mapping[str, Any] = optional(params, "__pydantic_extra__") or {}
        name = getattr(params, named) if named is not None else more.get("name")
        uri = getattr(params, addressed) if addressed is not None else more.get("uri")
    if isinstance(uri, str) and len(uri) > MAX_URI_CHARACTERS:
        raise ProtocolError(INVALID_PARAMS, f"the URI is too long; the limit is {MAX_URI_CHARACTERS} characters")
    names = [name] if isinstance(name, str) else []
    names += [canonical(uri), uri] if isinstance(uri, str) else []
    return [(method, one) for one in dict.fromkeys(names)] or [(method, None)]


@cache
def _naming_attributes(kind: Hashable) -> tuple[str | None, str | None]:
    """Return the attributes in which objects of a class hold their members `name` and `uri`, if it has such fields."""
    wire = wire_fields(kind)
    return wire.get("name"), wire.get("uri")


@dataclass(frozen=True, eq=False)
class HttpEndpoint(Endpoint):
    """Endpoint whose messages may carry tokens. Scopes are compared once for each request, before it is handled.

    Args:
        access_policy: Returns the scopes of operations; `None` where messages carry no tokens, and nothing is checked.

    Raises:
        ValueError: See `Endpoint`.
    """

    access_policy: AccessPolicy | None = None

    @property
    def checks_scopes(self) -> bool:  # type: ignore[override]
        """True if messages carry tokens."""
        return self.access_policy is not None

    def needed_scopes(
        self, revision: str | None, operations: Sequence[Operation], identity: Identity | None = None
    ) -> frozenset[str]:
        """Return the scopes that operations need together.

        Args:
            revision: Their revision, if known.
            operations: Operations, at least one.
            identity: The caller, from whom a server may hide targets: these need no scopes, as unknown targets do.
        """
        if self.access_policy is None:
            return frozenset()
        served = None if revision is None else self.served(revision)
        if served is not None and not isinstance(served, Server):
            operations = served.operations(operations)
        server = None if served is None else original(served)
        if server is not None and identity is not None:
            operations = [(one, None if server.hides(identity, one, name) else name) for one, name in operations]
        needed = frozenset[str]().union(*map(self.access_policy.needed, operations))
        if server is not None and type(server).required_scopes is not Server.required_scopes:
            needed = needed.union(*(server.required_scopes(method, name) for method, name in operations))
        return needed

    def authorize(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> None:
        """Check that an identity has the needed scopes.

        Raises:
            InsufficientScope: A scope is missing; the error lists all needed scopes.
        """
        check(identity, self.needed_scopes(revision, operations, identity), operations)

    def allows(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> bool:
        """Return True if an identity has the needed scopes, and no server hides the targets from it."""
        needed = self.needed_scopes(revision, operations)
        if needed and (identity is None or not identity.has(*needed)):
            return False
        served = None if revision is None else self.served(revision)
        return served is None or not any(original(served).hides(identity, *one) for one in operations)

    async def admit(self, identity: Identity | None, events: Iterable[Event]) -> None:
        """Check that a token allows all messages of a request; other tasks run in between.

        Raises:
            InsufficientScope: A scope is missing; the error lists all needed scopes.
        """
        if self.access_policy is None:
            return
        needed: frozenset[str] = frozenset()
        asked: list[Operation] = []
        turn = Turn()
        for event in events:
            revision: str | None = None
            found: list[Operation] = [("an answer", None)]
            if isinstance(event, Requested | Notified):
                revision, found = event.dispatcher.revision.name, operations(event.route.method, event.params)
            for one in found:
                await turn.give_way()
                needed |= self.needed_scopes(revision, [one], identity)
            asked += found
        check(identity, needed, asked)
