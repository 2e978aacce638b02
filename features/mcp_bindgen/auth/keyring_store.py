"""Store of tokens in the keyring of the desktop: Keychain, Credential Locker, Secret Service."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import keyring
from anyio import to_thread
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .store import FileStore, Key, Record, SharedStore, Store

SERVICE = "mcp-bindgen"
"""Name of our entries in a keyring."""

_MAX_ENTRY_CHARACTERS = 1000  # Windows stores 2560 bytes, two for each character
_MAX_COUNT_DIGITS = 4  # of the number of entries of a record
_INDEX = "index"

T = TypeVar("T")


class KeyringStore(SharedStore):
    """Store of records in a keyring; long records have several entries.

    Args:
        backend: The keyring; by default that of this machine.
        folder: Folder of the lock files.
    """

    def __init__(self, backend: KeyringBackend | None = None, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._backend: Any = backend or keyring.get_keyring()  # its methods have no types

    async def load(self, key: Key) -> Record | None:
        """Return a record."""
        found = await _in_thread(self._get, key.digest)
        return found if is_object(found) else None

    async def keys(self) -> Sequence[Key]:
        """Return the keys of all records."""
        found = await _in_thread(self._get, _INDEX)
        keys = map(Key.load, found) if is_array(found) else ()
        return sorted(key for key in keys if key is not None)

    async def damaged(self) -> Sequence[AuthorizationError]:
        """Return an error for each record that the keyring has lost or damaged."""
        lost = [key.resource or key.issuer for key in await self.keys() if await self.load(key) is None]
        return [AuthorizationError(f"the keyring's record for {one} is damaged: log in again") for one in lost]

    async def _write(self, key: Key, record: Record | None) -> None:
        await _in_thread(self._set, key.digest, record)
        keys = [one for one in await self.keys() if one != key] + ([key] if record is not None else [])
        await _in_thread(self._set, _INDEX, [asdict(one) for one in keys])

    def _get(self, name: str) -> Any:
        head = self._backend.get_password(SERVICE, name)
        if head is None:
            return None
        parts = [self._backend.get_password(SERVICE, f"{name}.{number}") for number in range(1, _count(head))]
        try:
            return json.loads("".join([head.partition(":")[2], *(part or "" for part in parts)]))
        except (ValueError, RecursionError):
            return None

    def _set(self, name: str, value: Any) -> None:
        head = self._backend.get_password(SERVICE, name)
        before = 0 if head is None else _count(head)
        text = "" if value is None else json.dumps(value)
        size = _MAX_ENTRY_CHARACTERS
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        for number, part in reversed(list(enumerate(parts))):  # the head, which has the number of entries, is last
            entry = part if number else f"{len(parts)}:{part}"
            self._backend.set_password(SERVICE, f"{name}.{number}" if number else name, entry)
        for number in range(len(parts), before):
            with suppress(PasswordDeleteError):
                self._backend.delete_password(SERVICE, f"{name}.{number}" if number else name)


async def _in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Call the keyring, which blocks, in a thread."""
    try:
        return await to_thread.run_sync(work, *arguments)
    except Exception as error:  # backends let errors of D-Bus and of the system through; their texts may hold secrets
        raise AuthorizationError(f"the keyring cannot be used: {type(error).__name__}") from None


def _count(head: str) -> int:
    """Return the number of entries of a record by the first entry."""
    count = head.partition(":")[0]
    return int(count) if count.isascii() and count.isdecimal() and len(count) <= _MAX_COUNT_DIGITS else 1


def default_store() -> Store:
    """Return the keyring of this machine, or files where there is none.

    Raises:
        AuthorizationError: The keyring that the user has configured cannot be used.
    """
    try:
        backend = keyring.get_keyring()
        is_usable = backend.priority >= 1
    except Exception as error:  # backends raise errors of many types
        raise AuthorizationError(f"the configured keyring cannot be used: {error}") from None
    return KeyringStore(backend) if is_usable else FileStore()
