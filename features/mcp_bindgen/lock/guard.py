"""Guard of a connection: only entries that agree with the lock are listed, called or read.

client = Guard("mcp.lock", "weather").attach(Client())
async with client.connected("npx -y weather") as client:
    await client.call_tool("forecast", {"city": "Oslo"})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
from pydantic.alias_generators import to_snake

from mcp_bindgen.app.catalog import KINDS, Kind
from mcp_bindgen.drift.changes import Change, Fact, Pair, Verdict, change_of_server, changes
from mcp_bindgen.drift.snapshot import NO_INFO, Snapshot, digest
from mcp_bindgen.runtime.logs import harmless, log
from mcp_bindgen.runtime.protocol.methods import Method
from mcp_bindgen.runtime.session.client import Client

from .document import Lock

C = TypeVar("C", bound=Client)

_LISTED: Mapping[str, Kind] = {place.listed: kind for kind, place in KINDS.items()}
_USED: Mapping[str, Kind] = {place.used: kind for kind, place in KINDS.items() if kind != "template"}
"""Requests that list entries, and requests that name one in their params, each with the kind of the entries."""

_MAX_REPORTED = 50
"""Maximum number of names that are logged because the lock does not have them."""


class NotAsLocked(Exception):
    """A server, or an entry of it, does not agree with the lock; the message names both and the fix.

    Attributes:
        server: Name of the server in the lock.
        change: The change of the server or the entry.
    """

    def __init__(self, server: str, change: Change, fix: str) -> None:
        subject = f", {change.kind} {change.name!r}" if change.name else ""
        reasons = change.reasons if change.is_new or not change.verdict.is_open else ()
        said = "; ".join([*reasons, *(f"{place} changed" for place, _, _ in change.texts)])
        super().__init__(harmless(f"server {server!r}{subject}: {said}; {fix}"))
        self.server = server
        self.change = change


class Guard:
    """Guard of one connection to a locked server.

    Lists have the entries that agree with the lock. A call of another tool or prompt raises, and so does reading a
    resource that the lock has in another form. After the server announced changed lists, they are compared again before
    the next use. A server with another name or other instructions is refused as a whole.

    Args:
        lock: The lock, or its file.
        server: Name of the server in the lock.

    Raises:
        BadLock: The file is no lock, or does not have the server.
    """

    def __init__(self, lock: Lock | str | PathLike[str], server: str) -> None:
        self._lock = lock if isinstance(lock, Lock) else Lock.read(lock)
        self._server = server
        self._locked = self._lock.server(server).current
        self._changes: dict[tuple[Kind, str], Change] = {}
        self._judged_at: dict[tuple[Kind, str], int] = {}
        self._known: dict[tuple[Kind, str], tuple[str, Change]] = {}
        self._listing = anyio.Lock()
        self._reported: set[tuple[Kind, str]] = set()
        self._of_server: Change | None = None
        self._revision = ""

    def attach(self, client: C) -> C:
        """Guard a client, and return it."""
        client.guard = self
        return client

    @property
    def changes(self) -> Mapping[tuple[Kind, str], Change]:
        """The changes of the entries that were listed last, by kind and name or URI, unchanged ones too."""
        return MappingProxyType(self._changes)

    @property
    def drift(self) -> Sequence[Change]:
        """The changes of the server and of listed entries since the lock, the worst first."""
        found = [*self._changes.values(), *([self._of_server] if self._of_server is not None else [])]
        return sorted((one for one in found if one.verdict or one.texts), key=lambda one: (one.is_open, -one.verdict))

    def check_server(self, revision: str, info: Any, instructions: str | None) -> None:
        """Compare the identity and the instructions that the server states each time it introduces itself.

        Raises:
            NotAsLocked: It is another server, or the model would read other instructions.
        """
        live = Snapshot(revision, NO_INFO if info is None else info.model_dump(), instructions, {})
        self._revision, known = revision, self._of_server
        self._of_server = change_of_server(self._locked, live)
        if self._of_server != known:
            self._report(self._of_server)
        if not self._of_server.is_open:
            raise self._error(self._of_server)

    async def request(self, client: Client, method: Method, params: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer of a request, without entries that do not agree with the lock.

        Raises:
            NotAsLocked: The request is about an entry that the lock does not have, or has in another form.
        """
        if self._of_server is None:  # it was attached to a connected client
            self.check_server(client.wire_revision, client.server_info, client.instructions)
        elif not self._of_server.is_open:
            raise self._error(self._of_server)
        if (kind := _LISTED.get(method.name)) is not None:
            announced = client.changes
            return await self._open_entries(kind, await send(), announced)
        if (kind := _USED.get(method.name)) is not None:
            await self._admit(client, kind, str(params.uri if kind == "resource" else params.name))
        return await send()

    async def _admit(self, client: Client, kind: Kind, name: str) -> None:
        """Raise `NotAsLocked` unless an entry agrees with the lock; compare it first if that is due."""
        if name not in self._locked.entries[kind]:
            if kind == "resource":  # templates and results name resources that no list has
                return
            raise self._error(_added(kind, name))
        if self._is_outdated(client, kind, name):
            async with self._listing:
                if self._is_outdated(client, kind, name):
                    await self._list(client, kind)
        change = self._changes.get((kind, name))
        if change is None:
            removed = Fact(Verdict.BREAKING, f"{kind}-removed", "the server does not list it any more")
            raise self._error(Change(kind, name, [removed]))
        if not change.is_open:
            raise self._error(change)

    async def _list(self, client: Client, kind: Kind) -> None:
        """Ask for all pages of a list; `request` compares them."""
        self._changes = {key: one for key, one in self._changes.items() if key[0] != kind}
        await client.relearn(client.dispatcher.revision.request(KINDS[kind].listed))

    def _is_outdated(self, client: Client, kind: Kind, name: str) -> bool:
        """Return whether an entry must be compared before its use."""
        return self._judged_at.get((kind, name)) != client.changes or (kind, name) not in self._changes

    async def _open_entries(self, kind: Kind, answer: Any, announced: int) -> Any:
        """Return the result of a list with the entries that agree with the lock."""
        member, key = to_snake(KINDS[kind].member), to_snake(KINDS[kind].key)
        locked = self._locked.entries[kind]
        listed = [(getattr(item, key), item) for item in getattr(answer, member)]
        found = {name: (item, item.model_dump()) for name, item in reversed(listed) if name in locked}
        due: list[Pair] = []
        for name, (_, live) in found.items():
            seen = self._known.get((kind, name))
            if seen is not None and seen[0] == digest(live):
                self._changes[kind, name] = seen[1]
            else:
                due.append((kind, name, locked[name], live))
        judge = partial(changes, due, self._lock.callers, isolated=True)
        for (_, name, _, live), change in zip(due, await anyio.to_thread.run_sync(judge) if due else [], strict=True):
            self._known[kind, name] = digest(live), change
            self._changes[kind, name] = change
            self._report(change)
        self._judged_at |= dict.fromkeys(((kind, name) for name in found), announced)
        for name in dict.fromkeys(name for name, _ in listed if name not in locked):
            if len(self._reported) < _MAX_REPORTED and (kind, name) not in self._reported:
                self._reported.add((kind, name))
                self._report(_added(kind, name))
        kept = [item for name, (item, _) in reversed(found.items()) if self._changes[kind, name].is_open]
        return answer.model_copy(update={member: kept})

    def _report(self, change: Change) -> None:
        if not change.is_open:
            log.warning("MCP %s", self._error(change))
        elif change.verdict:
            log.info("MCP server %s: %s %s: compatible with the lock", self._server, change.kind, change.name)

    def refusal(self, kind: Kind, name: str) -> NotAsLocked | None:
        """Return why the last list left out an entry; `None` if it did not."""
        if (kind, name) in self._reported:
            return self._error(_added(kind, name))
        change = self._changes.get((kind, name))
        return None if change is None or change.is_open else self._error(change)

    def _error(self, change: Change) -> NotAsLocked:
        fix = f"review it with: mcp-bindgen lock check --lock {self._lock.path}"
        if self._revision not in ("", self._locked.revision):
            fix += f" (locked in MCP {self._locked.revision}, spoken is {self._revision})"
        return NotAsLocked(self._server, change, fix)


def _added(kind: Kind, name: str) -> Change:
    added = Fact(Verdict.COMPATIBLE, f"{kind}-added", "the lock does not have it")
    return Change(kind, name, [added], is_new=True)
