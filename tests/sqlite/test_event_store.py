"""Event stores in SQLite files: durability, locks, and files of other programs."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.http import StoreLimits
from mcp_bindgen.http.server.event_store import OpenStream, StoredSession, StoreUnavailable
from mcp_bindgen.http.transport import open_store
from mcp_bindgen.sqlite import SqliteEventStore
from mcp_bindgen.sqlite.file import SqliteThread
from tests.harness.checked_connections import refused
from tests.harness.commands import execute
from tests.http.server.test_event_store import events, numbers


async def test_an_sqlite_error_is_raised_as_store_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    thread = SqliteThread(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), "test")
    await refused(thread.do(lambda db: db.execute("select * from missing").fetchone()), StoreUnavailable)
    thread.close()
    assert "no such table: missing" in caplog.text


async def test_the_events_in_a_file_survive_closing_the_store(tmp_path: Path) -> None:
    async def write(store: SqliteEventStore) -> None:
        await store.save("s", b"record")
        await store.write("s", "a", events(1, 2), b"[1]")

    async def read(store: SqliteEventStore) -> None:
        assert await store.load("s") == StoredSession(b"record", 1, {"a": OpenStream(2, b"[1]")})
        assert await numbers(store, "s", "a") == [1, 2]
        await store.write("s", "a", events(3, 4), b"[1]")
        assert await numbers(store, "s", "a") == [2, 3, 4]

    for part in (write, read):
        store = SqliteEventStore(tmp_path / "events.db", StoreLimits(all_events=3))
        await part(store)
        store.close()
        store.close()
        await refused(part(store), ValueError, "closed")
    assert stat.S_IMODE((tmp_path / "events.db").stat().st_mode) == 0o600


async def test_written_events_survive_a_killed_process(tmp_path: Path) -> None:
    code = """
import asyncio, os, signal, sys
from mcp_bindgen.http.server.event_store import StoredEvent
from mcp_bindgen.sqlite import SqliteEventStore
async def main():
    store = SqliteEventStore(sys.argv[1])
    await store.save("s", b"")
    for number in range(1, 100_000):
        await store.write("s", "a", [StoredEvent(number, b"%d" % number)], b"")
        print(number, flush=True)
asyncio.run(main())
"""
    path = tmp_path / "events.db"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 50:
                process.kill()
        said = 50 + len(process.stdout.read().split())
    store = SqliteEventStore(path)
    found = await numbers(store, "s", "a")
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= said
    store.close()


async def test_a_failed_write_does_not_affect_other_writes(tmp_path: Path) -> None:
    store = SqliteEventStore(tmp_path / "events.db")
    await store.save("s", b"")
    await store.write("s", "a", events(1), b"")
    writes = [store.write("s", "a", events(number), b"") for number in (2, 1, 3)]
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(result) for result in done] == [type(None), StoreUnavailable, type(None)]
    assert await numbers(store, "s", "a") == [1, 2, 3]
    store.close()


async def test_a_cancelled_write_does_not_affect_other_writes(tmp_path: Path) -> None:
    store = SqliteEventStore(tmp_path / "events.db")
    await store.save("s", b"")
    release = threading.Event()
    alive: Any = ("s" for _ in range(1) if release.wait(10))  # iterated in the thread of the store
    blocked = asyncio.ensure_future(store.sweep(alive, 1000))
    await asyncio.sleep(0.05)
    waiting = [asyncio.ensure_future(store.write("s", "a", events(number), b"")) for number in (1, 2, 3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    blocked.cancel()
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(waiting[0], waiting[2])
    assert await numbers(store, "s", "a") == [1, 3]
    store.close()


LOCKS = """
import sys
from mcp_bindgen.sqlite import SqliteEventStore
store = SqliteEventStore(sys.argv[1], wait=0.3)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.full
@pytest.mark.parametrize("new", [True, False], ids=["new", "old"])
async def test_a_file_can_be_open_only_once(tmp_path: Path, new: bool) -> None:
    """A second worker gets an error at once and changes nothing; after a kill, another worker takes over."""
    path = tmp_path / "events.db"
    if not new:
        SqliteEventStore(path).close()
    command = [sys.executable, "-c", LOCKS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"open\n"
        with pytest.raises(ValueError, match=r"events\.db is in use: only one process.*") as caught:
            SqliteEventStore(path, wait=0.1)
        assert "\n" not in str(caught.value)
        first.kill()
        first.wait()
    store = SqliteEventStore(path)
    with pytest.raises(ValueError, match="is in use"):
        SqliteEventStore(path, wait=0.1)
    await store.save("s", b"x")
    store.close()
    SqliteEventStore(path).close()


@pytest.mark.full
def test_only_one_of_several_starting_workers_opens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    command = [sys.executable, "-c", LOCKS.replace("import sys", "import sys; sys.tracebacklimit = 0"), str(path)]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(3)]
    said = [worker.stdout.readline() for worker in workers if worker.stdout is not None]
    failed = [worker for worker, line in zip(workers, said, strict=True) if not line]
    assert len(failed) == 2
    for worker in workers:
        errors = worker.communicate()[1]
        assert errors.startswith(b"ValueError: ") == (worker in failed)
        assert not errors or b"is in use" in errors


@pytest.mark.parametrize("content", [b"x" * 5000, "create table t (x)", "pragma user_version = 99"])
def test_files_that_are_not_event_stores_are_refused(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "other.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        other = sqlite3.connect(path)
        other.execute(content)
        other.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not an event store"):
        SqliteEventStore(path)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="missing"):
        SqliteEventStore(tmp_path / "missing" / "events.db")


def test_an_unclosed_store_does_not_keep_its_process_alive(tmp_path: Path) -> None:
    code = "import sys; from mcp_bindgen.sqlite import SqliteEventStore; s = SqliteEventStore(sys.argv[1])"
    done = execute(sys.executable, "-c", code, tmp_path / "events.db")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a#1?x=y&z.db", "ä.db", "file", "file.db"])
def test_the_path_of_a_store_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    for where in (name, str(tmp_path / name)):
        store = open_store(where)
        assert isinstance(store, SqliteEventStore)
        store.close()
        assert name in [path.name for path in tmp_path.iterdir()]
        (tmp_path / name).unlink()


@pytest.mark.parametrize("where", ["file:///x.db", "FILE://user:pw@x.db"])
def test_a_file_url_is_refused_with_the_fix(where: str) -> None:
    with pytest.raises(ValueError, match="the store is a file:// URL; write the path of the file") as caught:
        open_store(where)
    assert "pw" not in str(caught.value)
