"""Entry point `mcp_bindgen.bridging` of the kernel: servers and clients for revisions other than their own."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

from mcp_bindgen.runtime.bindings import NAMESPACE, imported
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import bridging
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.client import Client
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.user_bindings import install as install  # part of the entry point

from .chain import distances, missed, package_name
from .client import ClientBridges
from .server import BridgedServer


def served(servers: Sequence[Server], revisions: Collection[str] | None) -> dict[str, Server | bridging.BridgedServer]:
    """Return revision -> server for all that servers can serve, the best revision last.

    The server with the fewest steps serves a revision, and of several the newest.

    Args:
        servers: The servers, the best revision last.
        revisions: The revisions to serve; by default all released revisions, and the revisions of the servers.

    Raises:
        ValueError: One of `revisions` cannot be served.
    """
    found: dict[str, Server | bridging.BridgedServer] = {server.revision: server for server in servers}
    steps = {server.revision: distances(package_name(server.revision)) for server in servers}
    known = set(found)
    reached = dict.fromkeys(package for counts in steps.values() for package, count in counts.items() if count)
    others: Iterator[Revision] = imported((f"{NAMESPACE}.{one}" for one in reached), "REVISION")
    for revision in others:
        package = package_name(revision.name)
        known.add(revision.name)
        if revision.name in found or (revision.draft if revisions is None else revision.name not in revisions):
            continue
        nearest = min(reversed(servers), key=lambda server: steps[server.revision].get(package, len(steps) << 9))
        found[revision.name] = BridgedServer(nearest, revision)
    if revisions is not None:
        unknown = set(revisions) - found.keys()
        if unknown or not revisions:
            names = ", ".join(sorted(unknown)) or "none"
            raise ValueError(f"revisions: {names} cannot be served; there are {', '.join(sorted(known))}")
        found = {name: one for name, one in found.items() if name in revisions}
    found = dict(sorted(found.items(), key=lambda item: item[1].dispatcher.revision.rank))
    if log.isEnabledFor(logging.INFO):  # it imports all steps
        _log_losses(found)
    return found


def _log_losses(served: Mapping[str, Server | bridging.BridgedServer]) -> None:
    """Log the losses of the clients of each revision."""
    for name, one in served.items():
        if isinstance(one, BridgedServer):
            home = one.bridge.home
            lines = missed(home.revision.name, name, home.offered(one.server))
            log.info("clients of %s miss of %s: %s", name, type(one.server).__name__, "; ".join(lines) or "nothing")


def clients(clients: Sequence[Client]) -> ClientBridges:
    """Return the bridges from clients to the revisions that they do not speak."""
    return ClientBridges(clients)
