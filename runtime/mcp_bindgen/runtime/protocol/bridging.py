"""Conversion between revisions as the kernel uses it; a package of its own provides it.

The kernel looks for that package when a server is to serve, or a client to speak, a revision other than its own. It
registers an object of the type `Bridging` in the entry point group `mcp_bindgen.bridging`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ..entry_points import EntryPoints
from ..protocol.revision import KnownRevision
from .access import Operation
from .methods import Notification
from .revision import Dispatcher, Revision
from .routing import UserHandler

C = TypeVar("C")


class BridgedServer(Protocol):
    """A server that serves a revision other than its own."""

    @property
    def server(self) -> Any:
        """The server that the user wrote."""

    @property
    def dispatcher(self) -> Dispatcher:
        """The routes of the other revision."""
        ...

    @property
    def context(self) -> Any:
        """The class of the contexts that the server's handlers get."""

    def operations(self, asked: Sequence[Operation]) -> Sequence[Operation]:
        """Return operations of the other revision, with the operations of the server's revision that they imply."""
        ...

    def converted(self, method: Notification[Any], params: Any) -> tuple[Notification[Any], Any] | None:
        """Return a notification of the server in the other revision, or None if that cannot express it."""


@dataclass
class BridgedEngine:
    """Engine of an extension for clients of a revision that does not have the extension.

    Attributes:
        handlers: Method name -> handler, for params and results of that revision.
        capabilities: The capabilities to declare in addition to those of these handlers.
    """

    handlers: Mapping[str, UserHandler]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ClientBridges(Protocol[C]):
    """Bridges from clients to servers of other revisions."""

    @property
    def revisions(self) -> Sequence[Revision]:
        """The revisions that the clients do not speak themselves."""
        ...

    def wire_client(self, revision: Revision) -> C:
        """Return a client of a revision, which speaks for the nearest of the clients."""
        ...

    def begin(self, wire_client: C, session: Any, tasks: Any) -> C:
        """Return the client that a `wire_client` speaks for, now that it is connected."""
        ...


class Bridging(Protocol):
    """Entry point object."""

    def install(self) -> None:
        """Let Python import the bindings in the user's folder."""

    def plan(
        self, own: Sequence[KnownRevision], revisions: Collection[str] | None
    ) -> Mapping[str, tuple[KnownRevision, str]]:
        """Return revision -> its facts, and the revision of the server that serves it; the best revision last.

        Args:
            own: The revisions of the servers, the best last.
            revisions: The revisions to serve; by default all released revisions, and the revisions of the servers.

        Raises:
            ValueError: One of `revisions` cannot be served.
        """
        ...

    def bridged(self, server: Any, revision: KnownRevision) -> BridgedServer:
        """Return a server as a server of another revision."""
        ...

    def asking(self, home: Revision, wire: Revision) -> Any:
        """Return the class of contexts that ask a client of one revision in the types of another one."""

    def log_losses(self, servers: Sequence[Any]) -> None:
        """Log the losses of the clients of each bridged server among these."""

    def clients(self, clients: Sequence[C]) -> ClientBridges[C]:
        """Return the bridges from clients to the revisions that they do not speak."""
        ...


BRIDGING: EntryPoints[Bridging] = EntryPoints("mcp_bindgen.bridging", "conversion between revisions")

MISSING = "no conversion between revisions is installed"


def plan(own: Sequence[KnownRevision], revisions: Collection[str] | None) -> Mapping[str, tuple[KnownRevision, str]]:
    """Return the `plan` of the installed conversion; without one, only the revisions of the servers can be served."""
    bridges = BRIDGING.only()
    if bridges is not None:
        return bridges.plan(own, revisions)
    found = {one.name: (one, one.name) for one in own if revisions is None or one.name in revisions}
    unknown = set(revisions or ()) - found.keys()
    if unknown or not found:
        names, known = ", ".join(sorted(unknown)) or "none", ", ".join(one.name for one in own)
        raise ValueError(f"revisions: {names} cannot be served; {MISSING}; there are {known}")
    return found


def bridged(server: Any, revision: KnownRevision) -> BridgedServer:
    """Return a server as a server of another revision, which the plan has."""
    bridges = BRIDGING.only()
    assert bridges is not None
    return bridges.bridged(server, revision)


def asking(home: Revision, wire: Revision) -> Any:
    """Return contexts that ask a client of `wire` in the types of `home`; raise `TypeError` without conversion."""
    bridges = BRIDGING.only()
    if bridges is None:
        raise TypeError(f"the params are of MCP {home}, the client speaks {wire}; {MISSING}")
    return bridges.asking(home, wire)


def log_losses(servers: Sequence[Any]) -> None:
    """Log the losses of the clients of each bridged server among these."""
    bridges = BRIDGING.only()
    if bridges is not None:
        bridges.log_losses(servers)
