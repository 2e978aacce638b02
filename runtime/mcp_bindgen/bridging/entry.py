"""Entry point `mcp_bindgen.bridging` of the kernel: servers and clients for revisions other than their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mcp_bindgen.runtime.bindings import NAMESPACE, imported, known
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.revision import KnownRevision, facts_of
from mcp_bindgen.runtime.session.client import Client
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.user_bindings import install as install  # part of the entry point

from .chain import distances, missed, package_name
from .client import ClientBridges
from .server import BridgedServer
from .server import asking as asking  # part of the entry point


def plan(own: Sequence[KnownRevision], revisions: Collection[str] | None) -> dict[str, tuple[KnownRevision, str]]:
    """Return revision -> its facts, and the revision of the server that serves it; the best revision last.

    The server with the fewest steps serves a revision, and of several the newest.

    Args:
        own: The revisions of the servers, the best last.
        revisions: The revisions to serve; by default all released revisions, and the revisions of the servers.

    Raises:
        ValueError: One of `revisions` cannot be served.
    """
    found = {one.name: (one, one.name) for one in own}
    steps = {one.name: distances(package_name(one.name)) for one in own}
    reached = dict.fromkeys(package for counts in steps.values() for package, count in counts.items() if count)
    facts = {one.package: one for one in known().values()}
    packages = [f"{NAMESPACE}.{one}" for one in reached]
    unknown = imported((one for one in packages if one not in facts), "REVISION")
    others = [*(facts[one] for one in packages if one in facts), *map(facts_of, unknown)]
    for one in others:
        if one.name not in found and not (one.is_draft if revisions is None else one.name not in revisions):
            package = package_name(one.name)
            nearest = min(reversed(own), key=lambda home: steps[home.name].get(package, len(steps) << 9))
            found[one.name] = one, nearest.name
    if revisions is not None:
        if not revisions or not found.keys() >= set(revisions):
            names = ", ".join(sorted(set(revisions) - found.keys())) or "none"
            known_names = ", ".join(sorted({*found, *(one.name for one in others)}))
            raise ValueError(f"revisions: {names} cannot be served; there are {known_names}")
        found = {name: one for name, one in found.items() if name in revisions}
    return dict(sorted(found.items(), key=lambda item: item[1][0].rank))


def bridged(server: Server, revision: KnownRevision) -> BridgedServer:
    """Return a server as a server of another revision."""
    return BridgedServer(server, revision.bindings.REVISION)


def log_losses(servers: Sequence[Server | BridgedServer]) -> None:
    """Log the losses of the clients of each bridged server among these; it imports all steps."""
    for one in servers:
        if isinstance(one, BridgedServer):
            home = one.bridge.home
            lines = missed(home.revision.name, one.revision, home.offered(one.server))
            log.info(
                "clients of %s miss of %s: %s", one.revision, type(one.server).__name__, "; ".join(lines) or "nothing"
            )


def clients(clients: Sequence[Client]) -> ClientBridges:
    """Return the bridges from clients to the revisions that they do not speak."""
    return ClientBridges(clients)
