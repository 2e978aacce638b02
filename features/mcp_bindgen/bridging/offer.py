"""Find out which revisions some servers serve: their own, and those to which there are bridges."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.methods import Notification
from mcp_bindgen.runtime.protocol.revision import Revision

from .chain import PACKAGE, neighbours, package_name
from .descriptions import missed
from .server import BridgedServer
from .step import NotConvertible


def served(servers: Sequence[Any], revisions: Sequence[str] | None = None) -> dict[str, Any]:
    """Return revision -> what serves it, the best revision last.

    A server serves its own revision, and makes one for each other that can be reached from it. Where several could, it
    is the one with the fewest steps, and of these the newer.

    Args:
        servers: Servers, the best revision last.
        revisions: The revisions to serve; by default all that are released, and those of the servers.

    Raises:
        ValueError: A revision is wanted that cannot be served, or the bindings of a server are types and stubs only.
    """
    for server in servers:
        server.dispatcher.revision.check_connectable()
    found: dict[str, Any] = {server.revision: server for server in servers}
    wanted = None if revisions is None else set(revisions)
    steps = {server.revision: _steps(package_name(server.revision)) for server in servers}
    known = set(found)
    for package in dict.fromkeys(package for reached in steps.values() for package, far in reached.items() if far):
        revision = _revision(package)
        known.add(revision.name)
        if revision.name in found or (revision.draft if wanted is None else revision.name not in wanted):
            continue
        nearest = min(reversed(servers), key=lambda server: steps[server.revision].get(package, len(steps) << 9))
        made = _made_of(nearest)
        if revision.name not in made:
            made[revision.name] = BridgedServer(nearest, revision)
        found[revision.name] = made[revision.name]
    if wanted is not None:
        unknown = wanted - found.keys()
        if unknown or not wanted:
            raise ValueError(f"revisions: {_listed(unknown) or 'none'} cannot be served; there are {_listed(known)}")
        found = {name: one for name, one in found.items() if name in wanted}
    return dict(sorted(found.items(), key=lambda item: item[1].dispatcher.revision.rank))


def converted_for_all(server: Any, method: Notification[Any], params: Any) -> list[tuple[str, Notification[Any], Any]]:
    """Return what a server tells everybody, for each revision that it serves beside its own and that has words for it.

    Args:
        server: The server.
        method: The notification, in its own revision.
        params: Its params.

    Returns:
        Revision, notification and params, for each.
    """
    found: list[tuple[str, Notification[Any], Any]] = []
    for revision, one in _made_of(server).items():
        theirs = method if one.bridge.is_own(method) else one.bridge.counterpart(method)
        if isinstance(theirs, Notification):
            try:
                found.append((revision, theirs, params if theirs is method else one.bridge.params_down(theirs, params)))
            except NotConvertible as error:
                log.debug("not told in %s: %s", revision, error)
    return found


def tell_what_is_missed(served: Mapping[str, Any]) -> None:
    """Log a line for each revision, if anybody listens: what its clients miss of what the server behind it offers."""
    if not log.isEnabledFor(logging.INFO):
        return  # it would import all steps
    for name, one in served.items():
        if isinstance(one, BridgedServer):
            own = one.bridge.ours
            lines = missed(own.revision.name, name, own.offered(one.server))
            log.info("clients of %s miss of %s: %s", name, type(one.server).__name__, "; ".join(lines) or "nothing")


def _made_of(server: object) -> dict[str, BridgedServer]:
    """Return revision -> what serves it by a server; every endpoint of the server uses the same."""
    found: dict[str, BridgedServer] = server.__dict__.setdefault("_bridged", {})
    return found


def _steps(package: str) -> dict[str, int]:
    """Return package -> how many steps lead there from one, and as many back; itself included."""
    around = neighbours()
    if package not in around:
        around = neighbours(users=True)
    found = {package: 0}
    reached = [package]
    for one in reached:
        for other in around.get(one, ()):
            if other not in found and one in around.get(other, ()):
                found[other] = found[one] + 1
                reached.append(other)
    return found


def _revision(package: str) -> Revision:
    found: Revision = import_module(f"{PACKAGE.rpartition('.')[0]}.{package}.revision").REVISION
    return found


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
