"""Guard of a connection: only entries that agree with the lock are listed, called or read.

client = Guard("mcp.lock", "weather").attach(Client())
async with client.connected("npx -y weather") as client:
    await client.call_tool("forecast", {"city": "Oslo"})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar

import anyio

from mcp_bindgen.app.catalog import KINDS, Entry, Kind
from mcp_bindgen.runtime.logs import harmless, log
from mcp_bindgen.runtime.model.base import fields_of
from mcp_bindgen.runtime.protocol.methods import Method, Request
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.client import Client

from .document import NO_INFO, Lock, Snapshot, digest
from .verdict import LockStatus, Verdict, judge, judge_server

C = TypeVar("C", bound=Client)

_MAX_REPORTED = 50
"""Maximum number of names that are logged because the lock does not have them."""


class NotAsLocked(Exception):
    """A server, or an entry of it, does not agree with the lock; the message names both and the fix.

    Attributes:
        server: Name of the server in the lock.
        verdict: The verdict on the server or the entry.
    """

    def __init__(self, server: str, verdict: Verdict, fix: str) -> None:
        subject = f", {verdict.kind} {verdict.name!r}" if verdict.name else ""
        super().__init__(harmless(f"server {server!r}{subject}: {'; '.join(verdict.reasons)}; {fix}"))
        self.server = server
        self.verdict = verdict


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
        self._verdicts: dict[tuple[Kind, str], Verdict] = {}
        self._judged_at: dict[tuple[Kind, str], int] = {}
        self._known: dict[tuple[Kind, str], tuple[str, Verdict]] = {}
        self._listing = anyio.Lock()
        self._reported: set[tuple[Kind, str]] = set()
        self._of_server: Verdict | None = None
        self._revision = ""

    def attach(self, client: C) -> C:
        """Guard a client, and return it."""
        client.guard = self
        return client

    @property
    def verdicts(self) -> Mapping[tuple[Kind, str], Verdict]:
        """The verdicts on the entries that were listed last, by kind and name or URI."""
        return MappingProxyType(self._verdicts)

    @property
    def drift(self) -> Sequence[Verdict]:
        """The verdicts on the server and on listed entries that are not the same as in the lock, the worst first."""
        found = [*self._verdicts.values(), *([self._of_server] if self._of_server is not None else [])]
        return sorted((one for one in found if one.status is not LockStatus.SAME), key=lambda one: -one.status)

    def check_server(self, revision: str, info: Any, instructions: str | None) -> None:
        """Compare the identity and the instructions that the server states each time it introduces itself.

        Raises:
            NotAsLocked: It is another server, or the model would read other instructions.
        """
        live = Snapshot(revision, NO_INFO if info is None else info.model_dump(), instructions, {})
        self._revision, known = revision, self._of_server
        self._of_server = judge_server(self._locked, live)
        if self._of_server != known:
            self._report(self._of_server)
        if not self._of_server.status.is_open:
            raise self._error(self._of_server)

    async def request(self, client: Client, method: Method, params: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer of a request, without entries that do not agree with the lock.

        Raises:
            NotAsLocked: The request is about an entry that the lock does not have, or has in another form.
        """
        if self._of_server is None:  # it was attached to a connected client
            self.check_server(client.wire_revision, client.server_info, client.instructions)
        elif not self._of_server.status.is_open:
            raise self._error(self._of_server)
        lists, uses = _requests(client.dispatcher.revision)
        if (kind := lists.get(method.name)) is not None:
            changes = client.changes
            return await self._open_entries(kind, await send(), changes)
        if (kind := uses.get(method.name)) is not None:
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
        verdict = self._verdicts.get((kind, name))
        if verdict is None:
            raise self._error(Verdict(kind, name, LockStatus.BREAKING, ["the server does not list it any more"]))
        if not verdict.status.is_open:
            raise self._error(verdict)

    async def _list(self, client: Client, kind: Kind) -> None:
        """Ask for all pages of a list; `request` compares them."""
        self._verdicts = {key: one for key, one in self._verdicts.items() if key[0] != kind}
        revision = client.dispatcher.revision
        name = next(name for name, one in _requests(revision)[0].items() if one == kind)
        await client.relearn(revision.request(name))

    def _is_outdated(self, client: Client, kind: Kind, name: str) -> bool:
        """Return whether an entry must be compared before its use."""
        return self._judged_at.get((kind, name)) != client.changes or (kind, name) not in self._verdicts

    async def _open_entries(self, kind: Kind, answer: Any, changes: int) -> Any:
        """Return the result of a list with the entries that agree with the lock."""
        member = _attribute(kind)
        key = {"uriTemplate": "uri_template"}.get(KINDS[kind].key, KINDS[kind].key)
        locked = self._locked.entries[kind]
        listed = [(getattr(item, key), item) for item in getattr(answer, member)]
        found = {name: (item, item.model_dump()) for name, item in reversed(listed) if name in locked}
        due: list[tuple[Kind, str, Entry, Entry]] = []
        for name, (_, live) in found.items():
            seen = self._known.get((kind, name))
            if seen is not None and seen[0] == digest(live):
                self._verdicts[kind, name] = seen[1]
            else:
                due.append((kind, name, locked[name], live))
        judged = await anyio.to_thread.run_sync(partial(judge, due, isolated=True)) if due else []
        for (_, name, _, live), verdict in zip(due, judged, strict=True):
            self._known[kind, name] = digest(live), verdict
            self._verdicts[kind, name] = verdict
            self._report(verdict)
        self._judged_at |= dict.fromkeys(((kind, name) for name in found), changes)
        for name in dict.fromkeys(name for name, _ in listed if name not in locked):
            if len(self._reported) < _MAX_REPORTED and (kind, name) not in self._reported:
                self._reported.add((kind, name))
                self._report(_added(kind, name))
        kept = [item for name, (item, _) in reversed(found.items()) if self._verdicts[kind, name].status.is_open]
        return answer.model_copy(update={member: kept})

    def _report(self, verdict: Verdict) -> None:
        if verdict.status is LockStatus.COMPATIBLE:
            log.info("MCP server %s: %s %s: compatible with the lock", self._server, verdict.kind, verdict.name)
        elif verdict.status is not LockStatus.SAME:
            log.warning("MCP %s", self._error(verdict))

    def refusal(self, kind: Kind, name: str) -> NotAsLocked | None:
        """Return why the last list left out an entry; `None` if it did not."""
        if (kind, name) in self._reported:
            return self._error(_added(kind, name))
        verdict = self._verdicts.get((kind, name))
        return None if verdict is None or verdict.status.is_open else self._error(verdict)

    def _error(self, verdict: Verdict) -> NotAsLocked:
        fix = f"review it with: mcp-bindgen lock check --lock {self._lock.path}"
        if self._revision not in ("", self._locked.revision):
            fix += f" (locked in MCP {self._locked.revision}, spoken is {self._revision})"
        return NotAsLocked(self._server, verdict, fix)


@cache
def _requests(revision: Revision) -> tuple[Mapping[str, Kind], Mapping[str, Kind]]:
    """Return the requests that list entries, and the requests that use an entry, each with the kind of the entries.

    A use needs the same capability as the list, and has the key of the entry among its params.
    """
    asked = {name: method for name, method in revision.methods.items() if isinstance(method, Request)}
    kinds: Mapping[str | None, Kind] = {_attribute(kind): kind for kind in KINDS}
    lists: dict[str, Kind] = {name: kinds[method.items] for name, method in asked.items() if method.items in kinds}
    uses: dict[str, Kind] = {
        name: kind
        for listing, kind in lists.items()
        for name, method in asked.items()
        if name not in lists
        and method.capabilities == asked[listing].capabilities
        and KINDS[kind].key in fields_of(method.params)
    }
    return lists, uses


def _added(kind: Kind, name: str) -> Verdict:
    return Verdict(kind, name, LockStatus.ADDED, ["the lock does not have it"])


def _attribute(kind: Kind) -> str:
    return {"template": "resource_templates"}.get(kind, KINDS[kind].member)
