"""The document of a lock file: for each server the contract that was reviewed, and earlier ones.

The file is JSON, because JSON Schemas may hold `null`, which TOML lacks. Each entry has a digest of its content, which
tells files that were merged or edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from mcp_bindgen.app.catalog import KINDS, Entry, Kind
from mcp_bindgen.drift.callers import DEFAULT, BadCallers, Callers, callers, names
from mcp_bindgen.drift.snapshot import Snapshot, digest
from mcp_bindgen.json_schema.pointer import join
from mcp_bindgen.runtime.model.json_types import is_array, is_object

VERSION = 1
"""Version of the format."""

MAX_BYTES = 64 * 2**20
"""Maximum size of a lock file."""

_RELOCK = "write it again with: mcp-bindgen lock"


class BadLock(ValueError):
    """A file that is no lock; the message is one line with file, JSON Pointer, problem and fix."""


@dataclass(frozen=True)
class LockedServer:
    """Server in a lock file.

    Attributes:
        asked: The version that the configuration asks for: `command` with `package` and `version`, or `url`.
        current: The reviewed contract.
        history: Earlier reviewed contracts, the newest first.
    """

    asked: Mapping[str, str]
    current: Snapshot
    history: tuple[Snapshot, ...] = ()

    def updated(self, asked: Mapping[str, str], live: Snapshot, keep: int) -> LockedServer:
        """Return the server with another reviewed contract; at most `keep` earlier contracts are kept."""
        known = {digest(one): one for all_ in self.current.entries.values() for one in all_.values()}
        entries = {
            kind: {name: known.get(digest(one), one) for name, one in all_.items()}
            for kind, all_ in live.entries.items()
        }  # equal entries keep the order of their members
        is_same = live.digest == self.current.digest
        history = self.history if is_same else (self.current, *self.history)
        return LockedServer(asked, replace(live, entries=entries), history[:keep])


@dataclass(frozen=True)
class Lock:
    """Lock file.

    Attributes:
        path: The file.
        servers: Name in the configuration -> the server.
        callers: Profile of the callers that changes are judged for.
    """

    path: Path
    servers: Mapping[str, LockedServer] = field(default_factory=dict[str, LockedServer])
    callers: Callers = field(default_factory=callers)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Lock:
        """Return the lock in a file.

        Raises:
            BadLock: The file cannot be read, is no lock, or has content that its digests do not fit.
        """
        place = Path(path)
        try:
            if not place.is_file():
                raise BadLock(f"{place}: there is no such file; {_RELOCK}")
            with place.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise BadLock(f"{place}: {error.strerror or 'cannot be read'}") from None
        if len(raw) > MAX_BYTES:
            raise BadLock(f"{place}: larger than {MAX_BYTES} bytes; {_RELOCK}")
        try:
            document = json.loads(raw.decode("utf-8"), object_pairs_hook=_distinct)
            servers = dict(_servers(document))
            return cls(place, servers, _callers(document.get("callers")))
        except BadLock as error:
            raise BadLock(f"{place}#{error}; {_RELOCK}") from None
        except RecursionError:
            raise BadLock(f"{place}: nested too deeply; {_RELOCK}") from None
        except ValueError as error:
            raise BadLock(f"{place}: not a lock file: {error}; {_RELOCK}") from None

    def server(self, name: str) -> LockedServer:
        """Return a server; raise `BadLock` if the lock does not have it."""
        if name not in self.servers:
            raise BadLock(f"{self.path}: no server {name!r}; review it and add it with: mcp-bindgen lock")
        return self.servers[name]

    def with_server(self, name: str, server: LockedServer) -> Lock:
        """Return the lock with another content for one server."""
        return replace(self, servers={**self.servers, name: server})

    def document(self) -> dict[str, Any]:
        """Return the JSON value of the file, in a stable order."""
        servers = {name: _server_document(self.servers[name]) for name in sorted(self.servers)}
        is_ours = self.callers.name in names() and self.callers == callers(self.callers.name)
        profile = self.callers.name if is_ours else self.callers.document()
        return {"lockVersion": VERSION, "callers": profile, "servers": servers}


# --- writing ----------------------------------------------------------------------------------------------------------


def _server_document(server: LockedServer) -> dict[str, Any]:
    held = {digest(one) for all_ in server.current.entries.values() for one in all_.values()}
    past = (one for snapshot in server.history for all_ in snapshot.entries.values() for one in all_.values())
    earlier = {key: one for one in past if (key := digest(one)) not in held}
    found = {"asked": dict(server.asked), **_snapshot_document(server.current, has_content=True)}
    if server.history:
        found["history"] = [_snapshot_document(past) for past in server.history]
        found["earlier"] = dict(sorted(earlier.items()))
    return found


def _snapshot_document(snapshot: Snapshot, *, has_content: bool = False) -> dict[str, Any]:
    stated = {"revision": snapshot.revision, "serverInfo": snapshot.info, "instructions": snapshot.instructions}
    found: dict[str, Any] = {key: value for key, value in stated.items() if value is not None}
    found["digest"] = snapshot.digest
    for kind, place in KINDS.items():
        entries = snapshot.entries[kind]
        if entries:
            found[place.member] = {
                name: {"digest": digest(one), **({"content": one} if has_content else {})}
                for name, one in entries.items()
            }
    return found


# --- reading ----------------------------------------------------------------------------------------------------------


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; a repeated member is the trace of a bad merge."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise ValueError(f"the member {twice!r} is there twice")
    return found


def _callers(value: object) -> Callers:
    """Return the profile in a lock: the name of one that comes with mcp-bindgen, or the content of another one.

    The file of another one is not read again, because it could change without a review.
    """
    try:
        if value is None or (isinstance(value, str) and value in names()):
            return callers(value or DEFAULT)
        stated = _as_object(value, "/callers")
        name, day = stated.pop("name", None), stated.get("date")
        if not isinstance(name, str) or name in names():
            raise BadLock("/callers/name: must be a text, and no name of a profile that comes with mcp-bindgen")
        return Callers.of(name, {**stated, "date": date.fromisoformat(str(day))}, "/callers")
    except BadCallers as error:
        raise BadLock(str(error)) from None


def _servers(document: object) -> Iterator[tuple[str, LockedServer]]:
    if not is_object(document) or "lockVersion" not in document:
        raise BadLock(": not a lock file")
    if document["lockVersion"] != VERSION:
        raise BadLock(f"/lockVersion: must be {VERSION}, which this version of mcp-bindgen reads")
    for name, value in _object(document, "servers", "").items():
        place = join("/servers", name)
        server = _as_object(value, place)
        asked = _object(server, "asked", place)
        if not all(isinstance(one, str) for one in asked.values()):
            raise BadLock(f"{place}/asked: must be an object with texts")
        contents: dict[str, Entry] = {}
        current = _snapshot(server, place, contents)
        for key, content in _object(server, "earlier", place, {}).items():
            contents[key] = _checked(content, key, join(f"{place}/earlier", key))
        history = server.get("history", [])
        if not is_array(history):
            raise BadLock(f"{place}/history: must be a list")
        past = (_as_object(one, f"{place}/history/{index}") for index, one in enumerate(history))
        earlier = [_snapshot(one, f"{place}/history/{index}", contents) for index, one in enumerate(past)]
        yield name, LockedServer(asked, current, tuple(earlier))


def _snapshot(value: Mapping[str, Any], place: str, contents: dict[str, Entry]) -> Snapshot:
    """Return a snapshot; `contents` has known contents by digest, and gets those of the snapshot."""
    entries: dict[Kind, dict[str, Entry]] = {}
    for kind, where in KINDS.items():
        entries[kind] = {}
        for name, one in _object(value, where.member, place, {}).items():
            at = join(f"{place}/{where.member}", name)
            key = _as_object(one, at).get("digest")
            if not isinstance(key, str):
                raise BadLock(f"{at}/digest: must be a text")
            if "content" in one:
                contents[key] = _checked(one["content"], key, f"{at}/content")
            if key not in contents:
                raise BadLock(f"{at}: the content of its digest is missing")
            entry = contents[key]
            if entry.get(where.key) != name:
                raise BadLock(f"{at}: its content has another {where.key}")
            for schema in ("inputSchema", "outputSchema") if kind == "tool" else ():
                if not is_object(entry.get(schema, {})):
                    raise BadLock(f"{at}/content/{schema}: must be an object")
            entries[kind][name] = entry
    revision, info, instructions = value.get("revision"), value.get("serverInfo", {}), value.get("instructions")
    if not isinstance(revision, str):
        raise BadLock(f"{place}/revision: must be a text")
    if not (instructions is None or isinstance(instructions, str)):
        raise BadLock(f"{place}/instructions: must be a text")
    found = Snapshot(revision, _as_object(info, f"{place}/serverInfo"), instructions, entries)
    if value.get("digest") != found.digest:
        raise BadLock(f"{place}/digest: does not fit the content")
    return found


def _checked(content: object, key: str, place: str) -> Entry:
    found = _as_object(content, place)
    if digest(found) != key:
        raise BadLock(f"{place}: the digest does not fit the content")
    return found


def _object(
    value: Mapping[str, Any], member: str, place: str, absent: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    if member not in value and absent is not None:
        return absent
    return _as_object(value.get(member), f"{place}/{member}")


def _as_object(value: object, place: str) -> dict[str, Any]:
    if not is_object(value):
        raise BadLock(f"{place}: must be an object")
    return value
