"""Event stores: one suite for all stores, a reference model, and a comparison of two stores."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.cluster.session_registry import RedisStore
from mcp_bindgen.http import EventStore, MemoryEventStore, StoreLimits
from mcp_bindgen.http.server.event_store import (
    PAGE,
    OpenStream,
    StoredEvent,
    StoredSession,
    StoreUnavailable,
    account_of,
    page,
)
from mcp_bindgen.sqlite import SqliteEventStore
from tests.harness.checked_connections import refused
from tests.harness.effort import examples
from tests.harness.redis_server import ANSWER_SECONDS

Make = Callable[..., AbstractAsyncContextManager[EventStore]]
AMPLE = StoreLimits()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a factory of empty stores."""

    @asynccontextmanager
    async def made(limits: StoreLimits = AMPLE) -> AsyncGenerator[EventStore]:
        if request.param == "memory":
            yield MemoryEventStore(limits)
        elif request.param == "sqlite":
            with closing(SqliteEventStore(tmp_path / "events.db", limits)) as store:
                yield store
        else:
            shared = RedisStore(request.getfixturevalue("redis").url, limits=limits, timeout=ANSWER_SECONDS)
            await shared.heartbeat()
            yield shared
            await shared.resign()

    return made


alone = pytest.mark.parametrize("make", ["memory", "sqlite"], indirect=True)
"""Restrict a test to stores of a single process; workers that share a store guarantee more."""


def events(*numbers: int, size: int = 3) -> list[StoredEvent]:
    return [StoredEvent(number, b"%d" % number * size) for number in numbers]


async def numbers(store: EventStore, session: str, stream: str, after: int = 0) -> list[int]:
    """Return the numbers of all events that a reader receives until the end of the stream."""
    found: list[int] = []
    while page := await store.read(session, stream, after):
        found += [event.number for event in page]
        after = found[-1]
    return found


# --- one suite for all stores ---------------------------------------------------------------------------------


async def test_events_come_back_in_order(make: Make) -> None:
    async with make() as store:
        await store.save("s", b"")
        await store.write("s", "a", events(1, 2), b"[1]")
        await store.write("s", "b", events(1), b"[2]")
        await store.write("s", "a", events(3), None)
        assert await store.read("s", "a", 0) == events(1, 2, 3)
        assert await store.read("s", "a", 2) == events(3)
        assert await store.read("s", "a", 3) == await store.read("s", "b", 1) == await store.read("s", "c", 0) == []
        assert (await store.span("s", "a"), await store.span("s", "b")) == ((1, 3), (1, 1))
        assert await store.span("s", "c") is await store.span("t", "a") is None


async def test_streams_may_be_empty(make: Make) -> None:
    async with make() as store:
        await store.save("s", b"")
        await store.write("s", "a", [], b"[1]")
        assert await store.span("s", "a") == (1, 0)
        await store.write("s", "a", [], None)
        assert await store.span("s", "a") is None


async def test_long_streams_come_in_pages(make: Make) -> None:
    async with make() as store:
        await store.save("s", b"")
        large = [StoredEvent(number, bytes(PAGE // 2 - 1)) for number in range(1, 7)]
        await store.write("s", "a", [*large, StoredEvent(7, bytes(3 * PAGE)), StoredEvent(8, b"x")], b"")
        pages, after = list[list[int]](), 0
        while page := await store.read("s", "a", after):
            pages.append([event.number for event in page])
            after = page[-1].number
        assert pages == [[1, 2], [3, 4], [5, 6], [7], [8]]


@alone
async def test_a_session_is_loaded_with_its_open_streams(make: Make) -> None:
    async with make() as store:
        assert await store.load("s") is None
        await store.save("s", b"first")
        await store.save("s", b"second")
        await store.write("s", "0", events(1, 2), b"[]")
        await store.write("s", "a", events(1), b"[1,2]")
        await store.write("s", "b", events(1), b"[3]")
        await store.write("s", "b", events(2), None)
        await store.write("s", "c", [], b"[4]")
        streams = {"0": OpenStream(2, b"[]"), "a": OpenStream(1, b"[1,2]"), "c": OpenStream(0, b"[4]")}
        assert await store.load("s") == StoredSession(b"second", 1, streams)
        assert await store.load("s") == StoredSession(b"second", 2, streams)


async def test_a_forgotten_session_stays_forgotten(make: Make) -> None:
    async with make() as store:
        for session in ("s", "t"):
            await store.save(session, b"")
            await store.write(session, "a", events(1), b"")
        await store.forget("s")
        await store.forget("s")
        await store.write("s", "a", events(2), b"")
        assert await store.load("s") is None
        assert await store.span("s", "a") is None
        assert (await numbers(store, "s", "a"), await numbers(store, "t", "a")) == ([], [1])
        await store.save("s", b"")
        assert await store.span("s", "a") is None


@alone
async def test_idle_sessions_are_swept(make: Make) -> None:
    async with make() as store:
        for session in ("used", "written", "idle"):
            await store.save(session, b"")
        await store.sweep([], 60)
        await asyncio.sleep(0.3)
        await store.write("written", "a", events(1), b"")
        await store.sweep(["used", "unknown"], 0.2)
        assert [await store.load(session) is not None for session in ("used", "written", "idle")] == [True, True, False]


async def test_the_oldest_events_of_a_session_are_evicted_first(make: Make) -> None:
    async with make(StoreLimits(events=4, size=100)) as store:
        for session in ("s", "t"):
            await store.save(session, b"")
            await store.write(session, "a", events(1, 2), None)
            await store.write(session, "b", events(1, 2), b"")
        await store.write("s", "b", events(3), b"")
        assert await store.span("s", "a") == (2, 2)
        await store.write("s", "b", events(4), b"")
        assert await store.span("s", "a") is None
        await store.write("s", "b", [StoredEvent(5, bytes(95))], b"")
        assert await store.span("s", "b") == (4, 5)
        await store.write("s", "b", [StoredEvent(6, bytes(200))], b"")
        assert (await store.span("s", "b"), await numbers(store, "s", "b")) == ((6, 6), [6])
        assert await numbers(store, "t", "a") == await numbers(store, "t", "b") == [1, 2]


@alone
async def test_the_oldest_events_of_all_sessions_are_evicted_first(make: Make) -> None:
    async with make(StoreLimits(all_events=5, all_size=1000)) as store:
        for session in ("s", "t"):
            await store.save(session, b"")
            await store.write(session, "a", events(1, 2), b"")
        await store.write("t", "a", events(3, 4), b"")
        assert await store.span("s", "a") == (2, 2)
        await store.write("t", "a", events(5), b"")
        assert await store.span("s", "a") == (3, 2)
        await store.write("s", "a", [StoredEvent(3, bytes(995))], b"")
        assert await store.span("t", "a") == (5, 5)
        await store.forget("s")
        await store.write("t", "a", events(6, 7, 8, 9), b"")
        assert await numbers(store, "t", "a") == [5, 6, 7, 8, 9]


@alone
async def test_a_principal_evicts_only_its_own_events(make: Make) -> None:
    async with make(StoreLimits(events=20, all_events=60, all_size=2000, size_of_principal=1000)) as store:
        calm = ["anna", "ben", "cleo", "dan"]
        for session in calm:
            await store.save(session, b"", session)
            await store.write(session, "a", [StoredEvent(number, bytes(5)) for number in (1, 2, 3)], b"")
        for session in map(str, range(10)):
            await store.save(session, b"", "bob")
            await store.write(session, "a", [StoredEvent(1, bytes(400))], None)  # limit on bytes
            assert [await numbers(store, one, "a") for one in calm] == [[1, 2, 3]] * 4
        assert [await store.span(session, "a") for session in "789"] == [None, (1, 1), (1, 1)]
        for session in map(str, range(10)):
            await store.save(session, b"", "bob")
            await store.write(
                session, "b", [StoredEvent(number, b"x") for number in range(1, 20)], None
            )  # limit on events
            assert [await numbers(store, one, "a") for one in calm] == [[1, 2, 3]] * 4
        for name in ("carl", "dora", "emil"):
            await store.save(name, b"", name)
            await store.write(name, "a", [StoredEvent(1, bytes(900))], None)  # limit of all principals together
            assert [await numbers(store, one, "a") for one in calm] == [[1, 2, 3]] * 4
        assert None in [await store.span(name, "a") for name in ("carl", "dora", "emil")]


@alone
@pytest.mark.parametrize("limits", [StoreLimits(all_events=40), StoreLimits(all_size=400)], ids=["events", "bytes"])
async def test_principals_with_most_events_lose_them_in_turn(make: Make, limits: StoreLimits) -> None:
    async with make(limits) as store:
        for session in ("anna", "ben", "cleo"):
            await store.save(session, b"", session)
        for session in ("anna", "ben"):
            await store.write(session, "a", [StoredEvent(number, bytes(10)) for number in range(1, 21)], b"")
        for number in range(1, 40):
            await store.write("cleo", "a", [StoredEvent(number, bytes(10))], b"")
            held = sorted([len(await numbers(store, session, "a")) for session in ("anna", "ben", "cleo")])
            assert sum(held) == 40
            assert held[2] - held[1] <= 1
            assert held[0] == min(number, 13)


async def test_an_event_above_the_size_limit_of_a_principal_becomes_a_gap(make: Make) -> None:
    async with make(StoreLimits(size_of_principal=10_000)) as store:
        await store.save("s", b"")
        await store.write("s", "a", [*events(1), StoredEvent(2, bytes(10_001)), *events(3)], b"")
        assert [event.number for event in await store.read("s", "a", 0)] == [1]
        assert [event.number for event in await store.read("s", "a", 1)] == [3]  # 2 is missing; the reader sees the gap
        assert await store.span("s", "a") == (1, 3)


async def test_concurrent_writes_keep_all_events(make: Make) -> None:
    async with make() as store:
        await store.save("s", b"")

        async def one(name: str) -> None:
            for number in range(1, 21):
                await store.write("s", name, events(number), b"")

        await asyncio.gather(*(one(str(name)) for name in range(20)))
        for name in range(20):
            assert await numbers(store, "s", str(name)) == list(range(1, 21))


@alone
async def test_an_event_whose_number_exists_already_is_refused(make: Make) -> None:
    async with make() as store:
        await store.save("s", b"")
        await store.write("s", "a", events(1, 2), b"[1]")
        await refused(store.write("s", "a", events(2, 3), None), StoreUnavailable)
        assert await store.load("s") == StoredSession(b"", 1, {"a": OpenStream(2, b"[1]")})
        assert await numbers(store, "s", "a") == [1, 2]


# --- reference model ------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"), st.sampled_from("st"), st.sampled_from("ab"), st.lists(st.integers(0, 9), max_size=4)
        ),
        st.tuples(st.just("over"), st.sampled_from("st"), st.sampled_from("ab")),
        st.tuples(st.just("forget"), st.sampled_from("st")),
        st.tuples(st.just("save"), st.sampled_from("st")),
    ),
    max_size=25,
)


def _size(items: list[tuple[str, str, StoredEvent]]) -> int:
    return sum(len(item[2].data) for item in items)


class Model:
    """Reference model of an event store, as simple as possible."""

    def __init__(self, limits: StoreLimits) -> None:
        self.limits = limits
        self.accounts = {session: account_of(session) for session in "st"}
        self.sessions, self.held = set[str](), list[tuple[str, str, StoredEvent]]()
        self.last, self.ended = dict[tuple[str, str], int](), set[tuple[str, str]]()

    def write(self, session: str, stream: str, added: list[StoredEvent], pending: bytes | None) -> None:
        if session not in self.sessions:
            return
        place = session, stream
        self.last[place] = added[-1].number if added else self.last.get(place, 0)
        (self.ended.discard if pending is not None else self.ended.add)(place)
        limits = self.limits
        most = min(limits.size_of_principal, limits.all_size)
        self.held += [
            (session, stream, event if len(event.data) <= most else StoredEvent(event.number, b"")) for event in added
        ]
        if added:
            self._shrink([item for item in self.held if item[0] == session], limits.events, limits.size)
            while _size(self.of(session)) > limits.size_of_principal:
                self.held.remove(self.of(session)[0])
            for measure, bound in ((len, limits.all_events), (_size, limits.all_size)):
                while measure(self.held) > bound:
                    largest = min("st", key=lambda one: (-measure(self.of(one)), self.accounts[one]))
                    self.held.remove(self.of(largest)[0])
        for gone in [p for p in self.last if p in self.ended and not self.events(*p)]:
            del self.last[gone]
            self.ended.discard(gone)

    def _shrink(self, items: list[tuple[str, str, StoredEvent]], most: int, size: int) -> None:
        while len(items) > 1 and (len(items) > most or _size(items) > size):
            self.held.remove(items.pop(0))

    def of(self, session: str) -> list[tuple[str, str, StoredEvent]]:
        """Return the events of a principal that has one session."""
        return [item for item in self.held if item[0] == session]

    def forget(self, session: str) -> None:
        self.sessions.discard(session)
        self.held = [item for item in self.held if item[0] != session]
        self.last = {place: last for place, last in self.last.items() if place[0] != session}

    def events(self, session: str, stream: str) -> list[StoredEvent]:
        return [event for s, n, event in self.held if (s, n) == (session, stream)]

    def span(self, session: str, stream: str) -> tuple[int, int] | None:
        last = self.last.get((session, stream))
        return None if last is None else (last + 1 - len(self.events(session, stream)), last)


LIMITS = st.builds(StoreLimits, *(st.integers(1, most) for most in (6, 30, 9, 40, 35)))


@pytest.mark.full
@given(STEPS, LIMITS)
@settings(max_examples=examples(40, 100), deadline=None)
def test_stores_behave_like_the_reference_model(steps: list[Any], limits: StoreLimits) -> None:
    async def body(folder: str) -> None:
        model, sqlite = Model(limits), SqliteEventStore(Path(folder) / "events.db", limits)
        stores: list[EventStore] = [MemoryEventStore(limits), sqlite]
        try:
            for step in [("save", "s"), *steps]:
                match step:
                    case "save", session:
                        model.sessions.add(session)
                        for store in stores:
                            await store.save(session, b"", session)
                    case "forget", session:
                        model.forget(session)
                        for store in stores:
                            await store.forget(session)
                    case verb, session, stream, *more:
                        first = model.last.get((session, stream), 0) + 1
                        added = [StoredEvent(first + i, bytes(size)) for i, size in enumerate(more[0] if more else [])]
                        pending = b"" if verb == "write" else None
                        model.write(session, stream, added, pending)
                        for store in stores:
                            await store.write(session, stream, added, pending)
                for session in "st":
                    for stream in "ab":
                        for store in stores:
                            assert await store.span(session, stream) == model.span(session, stream)
                            assert await store.read(session, stream, 0) == page(model.events(session, stream))
        finally:
            sqlite.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(body(folder))


# --- comparison of two stores ---------------------------------------------------------------------------------

PRINCIPALS = {"q": "ada", "r": "ada", "s": "bob", "t": None, "u": None, "v": "eve"}
"""Session -> its principal."""

SESSION, STREAM = st.sampled_from(sorted(PRINCIPALS)), st.sampled_from("ab")
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), SESSION, st.binary(max_size=2)),
        st.tuples(st.just("load"), SESSION),
        st.tuples(st.just("forget"), SESSION),
        st.tuples(st.just("sweep"), st.lists(SESSION, unique=True)),
        st.tuples(
            st.just("write"), SESSION, STREAM, st.lists(st.integers(0, 9), max_size=4), st.sampled_from([None, b"[1]"])
        ),
    ),
    max_size=40,
)


@given(CALLS, LIMITS)
@settings(max_examples=examples(60, 400), deadline=None)
def test_the_store_in_memory_behaves_like_sqlite(calls: list[Any], limits: StoreLimits) -> None:
    async def one(store: EventStore) -> list[object]:
        """Make the calls; return all results."""
        found, last = list[object](), dict[tuple[str, str], int]()
        for session, principal in PRINCIPALS.items():
            await store.save(session, b"", principal)
        for call in calls:
            match call:
                case "save", session, record:
                    await store.save(session, record, PRINCIPALS[session])
                case "sweep", alive:
                    await store.sweep(alive, 0)
                case "write", session, stream, sizes, pending:
                    first = last.get((session, stream), 0) + 1
                    last[session, stream] = first + len(sizes) - 1
                    added = [StoredEvent(first + i, bytes(size)) for i, size in enumerate(sizes)]
                    await store.write(session, stream, added, pending)
                    found.append(await store.span(session, stream))
                case verb, session:
                    found.append(await getattr(store, verb)(session))
        for session in PRINCIPALS:
            found.append(await store.load(session))
            for stream in "ab":
                found += [await store.span(session, stream), await numbers(store, session, stream)]
                found.append(await store.read(session, stream, 2))
        return found

    with closing(SqliteEventStore(":memory:", limits)) as sqlite:
        assert asyncio.run(one(MemoryEventStore(limits))) == asyncio.run(one(sqlite))
