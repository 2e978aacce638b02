"""Keep tokens in the keyring of the desktop: Keychain, Credential Locker, Secret Service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keyring
from anyio import to_thread
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, PasswordDeleteError

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .store import FileStore, Key, Locks, Record, Store, default_folder

SERVICE = "mcp-bindgen"
"""The name under which a keyring shows what is kept."""

_PART = 1000  # characters of an entry: Windows takes 2560 bytes, two for each
_INDEX = "index"
_DIGITS = 5  # of the number of entries: no record has so many


class KeyringStore:
    """Keeps records in a keyring; long ones in several entries.

    Args:
        backend: The keyring; by default the one of this machine.
        folder: Where the files are with which processes keep out of each other's way; there is nothing in them.
    """

    def __init__(self, backend: KeyringBackend | None = None, folder: Path | None = None) -> None:
        self._backend: Any = backend or keyring.get_keyring()  # whose methods are hardly typed
        self.locks = Locks(folder or default_folder())

    async def load(self, key: Key) -> Record | None:
        """Return what is kept under a key."""
        found = await self._call(self._get, key.digest)
        return found if is_object(found) else None

    async def replace(self, key: Key, old: Record | None, new: Record | None) -> bool:
        """Keep `new` if `old` is still what is kept."""
        async with self.locks.held("all"):
            if await self.load(key) != old:
                return False
            await self._call(self._set, key.digest, new)
            listed = [asdict(one) for one in await self._listed() if one != key]
            await self._call(self._set, _INDEX, [*listed, *([asdict(key)] if new is not None else [])])
        return True

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Keep other tasks and processes out."""
        return self.locks.held(key.digest)

    async def keys(self) -> Sequence[Key]:
        """Return the keys under which something is kept."""
        return sorted(await self._listed())

    async def damaged(self) -> Sequence[AuthorizationError]:
        """Return an error for each record that the keyring does not have any more as it was kept."""
        return [
            AuthorizationError(f"what the keyring had for {key.resource or key.issuer} is damaged: log in again")
            for key in await self.keys()
            if await self.load(key) is None
        ]

    async def _listed(self) -> list[Key]:
        found = await self._call(self._get, _INDEX)
        keys = map(Key.load, found) if is_array(found) else ()
        return [key for key in keys if key is not None]

    async def _call(self, function: Any, *arguments: Any) -> Any:
        """Call the keyring, which blocks, in a thread."""
        try:
            return await to_thread.run_sync(lambda: function(*arguments))
        except KeyringError as error:
            raise AuthorizationError(f"the keyring cannot be used: {type(error).__name__}") from None

    def _get(self, name: str) -> Any:
        head = self._backend.get_password(SERVICE, name)
        if head is None:
            return None
        text = head.partition(":")[2]
        parts = [self._backend.get_password(SERVICE, f"{name}.{number}") for number in range(1, _count(head))]
        try:
            return json.loads("".join([text, *(part or "" for part in parts)]))
        except (ValueError, RecursionError):
            return None

    def _set(self, name: str, value: Any) -> None:
        head = self._backend.get_password(SERVICE, name)
        before = 0 if head is None else _count(head)
        text = "" if value is None else json.dumps(value)
        parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
        for number, part in reversed(list(enumerate(parts))):  # the head comes last: it says how many there are
            entry = part if number else f"{len(parts)}:{part}"
            self._backend.set_password(SERVICE, f"{name}.{number}" if number else name, entry)
        for number in range(len(parts), before):
            with suppress(PasswordDeleteError):
                self._backend.delete_password(SERVICE, f"{name}.{number}" if number else name)


def _count(head: str) -> int:
    """Return how many entries a record has that begins with this one."""
    count = head.partition(":")[0]
    return int(count) if count.isascii() and count.isdecimal() and len(count) < _DIGITS else 1


def default_store() -> Store:
    """Return the keyring of this machine, or files where there is none."""
    backend = keyring.get_keyring()
    return KeyringStore(backend) if backend.priority >= 1 else FileStore()
