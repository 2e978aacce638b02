"""Stores: only the owner reads a record again, and concurrent writers do not overwrite each other."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import keyring.backend
import keyring.errors
import pytest

from mcp_bindgen.auth.keyring_store import KeyringStore, default_store
from mcp_bindgen.auth.store import FileStore, Key, MemoryStore, Store, put
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from tests.harness.checked_connections import refused
from tests.harness.commands import ROOT, execute
from tests.harness.forks import PYTHON

KEY = Key("https://issuer.example", "https://mcp.example/mcp", "client")
OTHER = Key("https://issuer.example", "https://mcp.example/mcp", "other")
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no modes of files")


class Ring(keyring.backend.KeyringBackend):
    """Keyring in memory with the size limit of the Windows keyring."""

    priority: Any = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        assert len(password.encode("utf-16-le")) <= 2560
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError


@pytest.fixture(params=["memory", "file", "keyring"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return FileStore(tmp_path / "kept") if request.param == "file" else KeyringStore(Ring(), tmp_path / "locks")


async def test_a_record_is_loaded_only_under_its_key(store: Store) -> None:
    assert await store.load(KEY) is None
    long = {"access_token": "ä" * 5000, "scopes": ["a"], "expires_at": 1.5, "none": None}
    assert await store.replace(KEY, None, long)
    assert await store.load(KEY) == long
    assert await store.load(OTHER) is None
    assert await store.replace(OTHER, None, {"b": 1})
    assert await store.keys() == [KEY, OTHER]
    assert await store.replace(KEY, long, {"short": True})
    assert await store.load(KEY) == {"short": True}
    assert await store.replace(KEY, {"short": True}, None)
    assert await store.load(KEY) is None
    assert await store.keys() == [OTHER]


async def test_a_record_that_changed_meanwhile_is_not_replaced(store: Store) -> None:
    assert await store.replace(KEY, None, {"token": 1})
    assert not await store.replace(KEY, None, {"token": 2})
    assert not await store.replace(KEY, {"token": 0}, None)
    assert await store.load(KEY) == {"token": 1}


async def test_locks_exclude_concurrent_tasks_and_waiting_can_be_cancelled(store: Store) -> None:
    inside: list[int] = []

    async def work(number: int) -> None:
        async with store.lock(KEY):
            inside.append(number)
            assert len(inside) == 1
            await anyio.sleep(0.01)
            inside.remove(number)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(work, number)
        async with store.lock(OTHER):  # locks of different keys are independent
            pass

    async def hold() -> None:
        async with store.lock(KEY):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.05) as scope:
            async with store.lock(KEY):
                pass
        assert scope.cancelled_caught
        tasks.cancel_scope.cancel()
    async with store.lock(KEY):
        pass


async def kept(folder: Path) -> tuple[FileStore, Path]:
    """Return a file store with one record, and the file of the record."""
    store = FileStore(folder / "kept")
    await store.replace(KEY, None, {"access_token": "secret"})
    (path,) = store.folder.glob("*.json")
    return store, path


COUNTING = """\
import sys
import anyio
from mcp_bindgen.auth.store import FileStore, Key
from tests.harness.forks import PYTHON

async def main(folder):
    store, key = FileStore(folder), Key("a", "b", "c")
    for number in range(20):
        if number % 2:
            async with store.lock(key):
                old = await store.load(key)
                assert await store.replace(key, old, {"n": old["n"] + 1})
        else:
            while True:
                old = await store.load(key)
                async with store.lock(key):
                    if await store.replace(key, old, {"n": old["n"] + 1}):
                        break

anyio.run(main, sys.argv[1])
"""


async def test_concurrent_processes_lose_no_updates(tmp_path: Path) -> None:
    key, store = Key("a", "b", "c"), FileStore(tmp_path)
    await store.replace(key, None, {"n": 0})
    command = [PYTHON, "-c", COUNTING, str(tmp_path)]
    children = [await asyncio.create_subprocess_exec(*command, cwd=ROOT) for _ in range(3)]
    assert ([await child.wait() for child in children], await store.load(key)) == ([0, 0, 0], {"n": 60})


@posix
async def test_files_are_accessible_only_to_their_owner(tmp_path: Path) -> None:
    store, _ = await kept(tmp_path / "a")
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in store.folder.iterdir()} == {0o600}
    assert "secret" not in repr(store)


async def test_a_write_removes_the_unfinished_file_of_a_killed_process(tmp_path: Path) -> None:
    program = """
import os, signal, sys
import anyio
from mcp_bindgen.auth.store import FileStore, Key
os.fsync = lambda file: os._exit(9)
anyio.run(FileStore(sys.argv[1]).replace, Key("a", "b", "c"), None, {"token": "secret"})
"""
    for _ in range(2):
        execute(sys.executable, "-c", program, tmp_path, cwd=ROOT, code=9)
    await FileStore(tmp_path).replace(KEY, None, {"a": 1})
    assert {path.name for path in tmp_path.iterdir()} == {f"{KEY.digest}.json", "all.lock"}


@posix
async def test_waiting_for_the_lock_of_a_suspended_process_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    monkeypatch.setattr("mcp_bindgen.auth.store._LOCK_WAIT_SECONDS", 0.0)
    async with FileStore(tmp_path).lock(KEY):  # another store has other locks in this process, as another process has
        error = await refused(store.lock(KEY).__aenter__(), AuthorizationError, "resume or end that process")
        assert str(tmp_path / f"{KEY.digest}.lock") in str(error)
        assert error.is_temporary
    async with store.lock(KEY):
        pass


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o610])
async def test_a_file_accessible_to_other_users_is_refused(tmp_path: Path, mode: int) -> None:
    store, path = await kept(tmp_path)
    path.chmod(mode)
    for attempt in (store.load(KEY), store.replace(KEY, {"access_token": "secret"}, None)):
        assert "secret" not in str(await refused(attempt, AuthorizationError, "others can read it"))
    assert await store.keys() == []
    (problem,) = await store.damaged()
    assert "others can read it: chmod 600 it" in str(problem)
    assert "secret" not in str(problem)


@posix
async def test_a_pipe_in_place_of_a_file_is_refused_without_blocking(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    os.mkfifo(tmp_path / f"{KEY.digest}.json", 0o600)
    await refused(store.load(KEY), AuthorizationError, "is not a file")


@posix
async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    store, path = await kept(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    await refused(store.load(KEY), AuthorizationError, "is a link")
    for lock in store.folder.glob("*.lock"):
        lock.unlink()
        lock.symlink_to(tmp_path / "victim")
    await refused(store.replace(KEY, None, {}), AuthorizationError, "is a link")
    assert not (tmp_path / "victim").exists()


@posix
async def test_a_folder_writable_by_other_users_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    await refused(FileStore(tmp_path).replace(KEY, None, {}), AuthorizationError, "can be changed by others")


@posix
async def test_a_file_system_without_locks_or_that_is_read_only_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = await kept(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", mock.Mock(side_effect=OSError(errno.EROFS, "Read-only file system")))
        await refused(put(store, KEY, None), AuthorizationError, "Read-only file system")
    monkeypatch.setattr("fcntl.flock", mock.Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    await refused(put(store, KEY, None), AuthorizationError, "No locks available")


BROKEN = [b"", b"{", b"[]", b'{"record": 1}', b"\xff\xfe", b'{"record": {}, "key": {}}']
BROKEN += [b'{"record": {}, "key": {"issuer": 1, "resource": "", "client": ""}}', b"[" * 100_000]


@pytest.mark.parametrize("content", BROKEN, ids=lambda content: content[:60].decode("latin-1"))
async def test_a_damaged_file_is_reported_and_other_files_are_read(tmp_path: Path, content: bytes) -> None:
    store, path = await kept(tmp_path)
    await store.replace(OTHER, None, {"a": 1})
    assert await store.damaged() == []
    path.write_bytes(content)
    await refused(store.load(KEY), AuthorizationError, "delete it and log in again")
    assert await store.keys() == [OTHER]
    (problem,) = await store.damaged()
    assert str(path) in str(problem)
    assert len(str(problem).splitlines()) == 1


@pytest.mark.parametrize("damage", ["", "x", "1:", "9:{}", "99999999999:{}", '1:"text"', "\u0663:{}"])
async def test_a_damaged_keyring_entry_is_reported_and_other_entries_are_read(tmp_path: Path, damage: str) -> None:
    ring = Ring()
    store = KeyringStore(ring, tmp_path / "locks")
    for key in (KEY, OTHER):
        assert await store.replace(key, None, {"a": 1})
    ring.kept["mcp-bindgen", KEY.digest] = damage
    if "{}" not in damage:  # otherwise only the number of entries is wrong
        assert await store.load(KEY) is None
        (problem,) = await store.damaged()
        assert "https://mcp.example/mcp is damaged: log in again" in str(problem)
    assert await store.load(OTHER) == {"a": 1}
    assert await store.replace(KEY, await store.load(KEY), {"b": 2})
    assert await store.load(KEY) == {"b": 2}
    ring.kept["mcp-bindgen", "index"] = '1:[{"issuer": 1}, 2, {"issuer": "a", "resource": "b", "client": "c"}]'
    assert await store.keys() == [Key("a", "b", "c")]


@pytest.mark.parametrize("error", [keyring.errors.KeyringLocked, ConnectionResetError])
async def test_the_error_of_an_unusable_keyring_contains_no_secret(tmp_path: Path, error: type[Exception]) -> None:
    class Locked(Ring):
        def get_password(self, service: str, username: str) -> str | None:
            raise error("secret")

    with pytest.raises(AuthorizationError, match=f"the keyring cannot be used: {error.__name__}") as caught:
        await KeyringStore(Locked(), tmp_path).load(KEY)
    assert "secret" not in str(caught.value)


@pytest.mark.full
def test_the_default_store_uses_files_without_a_keyring(tmp_path: Path) -> None:
    code = "from mcp_bindgen.auth.keyring_store import default_store; print(default_store())"
    for ring, expected in (("keyring.backends.fail.Keyring", "FileStore"), (f"{__name__}.Ring", "KeyringStore")):
        environment = {"PYTHON_KEYRING_BACKEND": ring, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
        ran = execute(sys.executable, "-c", code, cwd=ROOT, code=None, **environment)
        assert expected in ran.stdout, ran.stderr


def test_a_configured_keyring_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_keyring", mock.Mock(side_effect=RuntimeError("no session bus")))
    with pytest.raises(AuthorizationError, match="the configured keyring cannot be used: no session bus"):
        default_store()
