"""Keep tokens and registrations over restarts, and among processes that share them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio

from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

Record = Mapping[str, Any]
"""Something that is kept: a JSON object."""

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""How files are opened; the last, so that a pipe in the place of one holds nobody up."""

_POLL = 0.02  # seconds between two tries to get a lock


@dataclass(frozen=True, order=True)
class Key:
    """Name something that is kept.

    Attributes:
        issuer: The authorization server; empty for what is known of a resource alone.
        resource: The resource; empty for what is known of the client alone.
        client: The client.
    """

    issuer: str
    resource: str
    client: str

    @property
    def digest(self) -> str:
        """A name for it that can be the name of a file."""
        text = json.dumps([self.issuer, self.resource, self.client])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @classmethod
    def load(cls, kept: object) -> Key | None:
        """Return what `asdict` made of one; `None` for anything else."""
        if not is_object(kept) or kept.keys() != {"issuer", "resource", "client"}:
            return None
        return cls(**kept) if all(isinstance(one, str) for one in kept.values()) else None


class Store(Protocol):
    """Keeps records.

    What is read may be old by the time it is written, so writing names what was read: another process may have used a
    refresh token that can be used only once. It may have `damaged`, which returns an error for each record that is
    there and cannot be read; those are not among its `keys`.
    """

    async def load(self, key: Key) -> Record | None:
        """Return what is kept under a key; raise `AuthorizationError` if it cannot be read safely."""
        ...

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Keep `new` if `old` is still what is kept, and tell whether it was; `None` stands for nothing.

        Raises:
            AuthorizationError: It cannot be written.
        """
        ...

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Keep others from what they do under the same lock, in this process and in others."""
        ...

    async def keys(self) -> Sequence[Key]:
        """Return the keys under which something is kept."""
        ...


class MemoryStore:
    """Keeps records as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[Key, Record] = {}
        self._locks: dict[Key, anyio.Lock] = {}

    async def load(self, key: Key) -> Record | None:
        """Return what is kept under a key."""
        return self._kept.get(key)

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Keep `new` if `old` is still what is kept."""
        if self._kept.get(key) != old:
            return False
        if new is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = dict(new)
        return True

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Keep other tasks out."""
        return _held(self._locks.setdefault(key, anyio.Lock()))

    async def keys(self) -> Sequence[Key]:
        """Return the keys under which something is kept."""
        return sorted(self._kept)


class FileStore:
    """Keeps records in files that only their owner can read, in a folder of their own.

    Args:
        folder: The folder; by default the one for settings of the user. It is made when something is kept.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        self.locks = Locks(self.folder)

    def __repr__(self) -> str:
        return f"FileStore({str(self.folder)!r})"

    async def load(self, key: Key) -> Record | None:
        """Return what is kept under a key; refuse files that others could have written or read, and links."""
        found = _read(self._path(key))
        return found["record"] if found is not None else None

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Keep `new` if `old` is still what is kept; what is kept is replaced as a whole or not at all."""
        async with self.locks.held("all"):
            if await self.load(key) != old:
                return False
            path = self._path(key)
            if new is None:
                path.unlink(missing_ok=True)
            else:
                _write(path, {"key": asdict(key), "record": dict(new)})
        return True

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Keep other tasks and processes out."""
        return self.locks.held(key.digest)

    async def keys(self) -> Sequence[Key]:
        """Return the keys under which something is kept that can be read."""
        return sorted(one for one in self._entries() if isinstance(one, Key))

    async def damaged(self) -> Sequence[AuthorizationError]:
        """Return an error for each file that cannot be read, or must not; it says what to do."""
        return [one for one in self._entries() if isinstance(one, AuthorizationError)]

    def _entries(self) -> Iterator[Key | AuthorizationError]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                found = _read(path)
            except AuthorizationError as error:
                yield error
            else:
                if found is not None:
                    yield found["key"]

    def _path(self, key: Key) -> Path:
        return self.folder / f"{key.digest}.json"


class Locks:
    """Locks that tasks and processes share, by name.

    Args:
        folder: Where their files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._within: dict[str, anyio.Lock] = {}

    @asynccontextmanager
    async def held(self, name: str) -> AsyncGenerator[None]:
        """Hold a lock; waiting for it can be cancelled, and it ends with the process that holds it."""
        async with _held(self._within.setdefault(name, anyio.Lock())):
            private_folder(self._folder)
            path = self._folder / f"{name}.lock"
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
            try:
                file = os.open(path, flags, 0o600)
            except OSError as error:
                raise _unusable(path, error) from None
            try:
                while not _locked(file):
                    await anyio.sleep(_POLL)
                yield
            finally:
                os.close(file)


def default_folder() -> Path:
    """Return the folder of the user for what this program keeps."""
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "mcp-bindgen" / "auth"


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner can use; refuse one that others can write to.

    Raises:
        AuthorizationError: It cannot be made, or is not safe.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise _unusable(folder, error) from None
    if sys.platform != "win32" and (status.st_mode & 0o022 or status.st_uid != os.geteuid()):
        raise AuthorizationError(f"{folder} can be changed by others: chmod 700 it, or keep tokens elsewhere")


@asynccontextmanager
async def _held(lock: anyio.Lock) -> AsyncGenerator[None]:
    async with lock:
        yield


def _read(path: Path) -> dict[str, Any] | None:
    try:
        file = os.open(path, _READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from None
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise AuthorizationError(f"{path} is not a file")
        if sys.platform != "win32" and (status.st_mode & 0o077 or status.st_uid != os.geteuid()):
            raise AuthorizationError(f"{path} has tokens, and others can read it: chmod 600 it, or delete it")
        try:
            found = json.loads(opened.read())
        except (ValueError, RecursionError):
            found = None
    key = Key.load(found.get("key")) if is_object(found) else None
    if key is None or not is_object(found) or not is_object(found.get("record")):
        raise AuthorizationError(f"{path} is not what was kept there: delete it and log in again")
    return {"key": key, "record": found["record"]}


def _write(path: Path, value: Mapping[str, Any]) -> None:
    temporary: str | None = None
    try:
        file, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # readable by its owner only
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            json.dump(value, opened)
            opened.flush()
            os.fsync(opened.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> AuthorizationError:
    if error.errno == errno.ELOOP:
        return AuthorizationError(f"{path} is a link, which is not followed to tokens: delete it")
    return AuthorizationError(f"{path} cannot be used to keep tokens: {error.strerror or type(error).__name__}")


if sys.platform == "win32":
    import msvcrt

    def _locked(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
