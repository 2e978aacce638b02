"""Stores of tokens and registrations, which survive restarts and are shared by processes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
from platformdirs import user_config_path

from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

Record = Mapping[str, Any]
"""A stored JSON object."""

_LOCK_POLL_SECONDS = 0.02
_LOCK_WAIT_SECONDS = 180.0  # longer than the requests during which a process that runs holds a lock
_LOCKED = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

if sys.platform == "win32":
    import msvcrt

    _SAFE_FLAGS = 0

    def _lock_file(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _is_foreign(status: os.stat_result, modes: int) -> bool:
        return False

else:
    import fcntl

    _SAFE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # the last so that a pipe does not block

    def _lock_file(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_foreign(status: os.stat_result, modes: int) -> bool:
        """Return True if another user owns a file, or has one of the permissions `modes`."""
        return bool(status.st_mode & modes) or status.st_uid != os.geteuid()


@dataclass(frozen=True, order=True)
class Key:
    """Key of a record.

    Attributes:
        issuer: The authorization server; empty for facts about a resource alone.
        resource: The resource; empty for facts about the client alone.
        client: The client.
    """

    issuer: str
    resource: str
    client: str

    @property
    def digest(self) -> str:
        """Name of the record in file names and keyrings."""
        text = json.dumps([self.issuer, self.resource, self.client])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @classmethod
    def load(cls, value: object) -> Key | None:
        """Return the key that `asdict` has turned into a value; `None` for any other value."""
        if not is_object(value) or value.keys() != {"issuer", "resource", "client"}:
            return None
        return cls(**value) if all(isinstance(one, str) for one in value.values()) else None


class Store(Protocol):
    """Store of records.

    A write names the record that was read before, because another process may have used a refresh token that can be
    used only once. A store may have `damaged`, which returns an error for each record that cannot be read; its `keys`
    leaves those records out.
    """

    async def load(self, key: Key) -> Record | None:
        """Return a record; raise `AuthorizationError` if it cannot be read safely."""

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Store `new` if `old` is still the record, and return True if so; `None` stands for no record.

        Raises:
            AuthorizationError: The record cannot be written.
        """
        ...

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Lock out other holders of the same lock, in this process and in other processes."""
        ...

    async def keys(self) -> Sequence[Key]:
        """Return the keys of all records."""
        ...


async def put(store: Store, key: Key, record: Record | None) -> None:
    """Store a record, whatever the current record is."""
    while not await store.replace(key, await store.load(key), record):
        pass


class MemoryStore:
    """Store of records in this process."""

    def __init__(self) -> None:
        self._records: dict[Key, Record] = {}
        self._locks: dict[Key, anyio.Lock] = {}

    async def load(self, key: Key) -> Record | None:
        """Return a record."""
        return self._records.get(key)

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Store `new` if `old` is still the record."""
        if self._records.get(key) != old:
            return False
        if new is None:
            self._records.pop(key, None)
        else:
            self._records[key] = dict(new)
        return True

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Lock out other tasks."""
        return self._locks.setdefault(key, anyio.Lock())

    async def keys(self) -> Sequence[Key]:
        """Return the keys of all records."""
        return sorted(self._records)


class SharedStore(ABC):
    """Base class of stores that processes share; they lock by files.

    Args:
        folder: Folder of the lock files; by default the user's folder for settings. It is created when needed.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder: Path = Path(folder) if folder is not None else default_folder()
        self._locks: dict[str, anyio.Lock] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    @abstractmethod
    async def load(self, key: Key) -> Record | None:
        """Return a record."""

    @abstractmethod
    async def _write(self, key: Key, record: Record | None) -> None:
        """Store or delete a record."""

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Store `new` if `old` is still the record."""
        async with self._held("all"):
            if await self.load(key) != old:
                return False
            await self._write(key, new)
        return True

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Lock out other tasks and processes."""
        return self._held(key.digest)

    @asynccontextmanager
    async def _held(self, name: str) -> AsyncGenerator[None]:
        """Hold a lock; it ends with the process, and waiting for it can be cancelled."""
        async with self._locks.setdefault(name, anyio.Lock()):
            _private_folder(self.folder)
            path = self.folder / f"{name}.lock"
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE_FLAGS, 0o600)
            except OSError as error:
                raise _unusable(path, error) from None
            try:
                end = anyio.current_time() + _LOCK_WAIT_SECONDS
                while True:
                    try:
                        _lock_file(file)
                        break
                    except OSError as error:
                        if error.errno not in _LOCKED:  # some file systems have no locks
                            raise _unusable(path, error) from None
                    if anyio.current_time() > end:
                        problem = f"another process holds {path}, perhaps a suspended one; resume or end that process"
                        raise AuthorizationError(problem, is_temporary=True)
                    await anyio.sleep(_LOCK_POLL_SECONDS)
                yield
            finally:
                os.close(file)


class FileStore(SharedStore):
    """Store of records in files that only their owner can read, in a folder of their own.

    Args:
        folder: The folder; by default the user's folder for settings. It is created when needed.
    """

    async def load(self, key: Key) -> Record | None:
        """Return a record; refuse links, and files that other users can read or write."""
        found = _read(self._path(key))
        return found[1] if found is not None else None

    async def keys(self) -> Sequence[Key]:
        """Return the keys of all readable records."""
        return sorted(one for one in self._entries() if isinstance(one, Key))

    async def damaged(self) -> Sequence[AuthorizationError]:
        """Return an error for each file that cannot be read, or must not; it names the remedy."""
        return [one for one in self._entries() if isinstance(one, AuthorizationError)]

    def _entries(self) -> Iterator[Key | AuthorizationError]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                found = _read(path)
            except AuthorizationError as error:
                yield error
            else:
                if found is not None:
                    yield found[0]

    async def _write(self, key: Key, record: Record | None) -> None:
        path = self._path(key)
        temporary = self.folder / ".new"
        try:
            if record is None:
                path.unlink(missing_ok=True)
                return
            temporary.unlink(missing_ok=True)  # of a killed process: the lock admits one writer at a time
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as opened:
                json.dump({"key": asdict(key), "record": dict(record)}, opened)
                opened.flush()
                os.fsync(opened.fileno())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise _unusable(path, error) from None

    def _path(self, key: Key) -> Path:
        return self.folder / f"{key.digest}.json"


def default_folder() -> Path:
    """Return the user's folder for tokens."""
    return user_config_path("mcp-bindgen", appauthor=False, roaming=True) / "auth"


def _private_folder(folder: Path) -> None:
    """Create a folder for its owner; refuse a folder that other users can write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise _unusable(folder, error) from None
    if _is_foreign(status, 0o022):
        raise AuthorizationError(f"{folder} can be changed by others: chmod 700 it, or keep tokens elsewhere")


def _read(path: Path) -> tuple[Key, dict[str, Any]] | None:
    try:
        file = os.open(path, os.O_RDONLY | _SAFE_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from None
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise AuthorizationError(f"{path} is not a file")
        if _is_foreign(status, 0o077):
            raise AuthorizationError(f"{path} has tokens, and others can read it: chmod 600 it, or delete it")
        try:
            found = json.loads(opened.read())
        except (ValueError, RecursionError):
            found = None
    if is_object(found) and is_object(record := found.get("record")):
        key = Key.load(found.get("key"))
        if key is not None:
            return key, record
    raise AuthorizationError(f"{path} is damaged: delete it and log in again")


def _unusable(path: Path, error: OSError) -> AuthorizationError:
    if error.errno == errno.ELOOP:
        return AuthorizationError(f"{path} is a link; tokens are not read through links: delete it")
    return AuthorizationError(f"{path} cannot be used to keep tokens: {error.strerror or type(error).__name__}")
