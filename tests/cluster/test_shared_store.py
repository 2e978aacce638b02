"""State that workers share in Redis: owners and expiry of sessions, merged updates, and stored data."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.auth.resource_server.dpop import ProofVerifier
from mcp_bindgen.auth.resource_server.verifier import InvalidProof
from mcp_bindgen.cluster.redis_connection import RedisConnection
from mcp_bindgen.cluster.session_registry import (
    RedisReplayCache,
    RedisStore,
    for_other_workers,
    merged,
)
from mcp_bindgen.cluster.store import FORMAT
from mcp_bindgen.http import HttpApp, HttpLimits, SseApp
from mcp_bindgen.http.server.event_store import StoredEvent, StoreUnavailable
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream
from mcp_bindgen.runtime import ProtocolError, RequestStateSigner, Server
from mcp_bindgen.runtime.session import client as client_module
from mcp_bindgen.runtime.session.targets import Provider
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import INITIALIZED, initialize, lone, notification, refused, request, until
from tests.harness.cluster import HEADERS, answer, text
from tests.harness.commands import execute
from tests.harness.effort import each, examples
from tests.harness.http_wires import LATEST, stateless, who, wires
from tests.harness.issuer import Prover
from tests.harness.redis_server import ANSWER_SECONDS, RedisServer
from tests.runtime.test_connecting import listening

PING = request(1, "ping")


class Tools(v2025_11_25.Server):
    """Server whose tool returns the name and the log level of its client."""

    info = mcp.Implementation(name="tools", version="1")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: v2025_11_25.Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2025_11_25.Context) -> mcp.CallToolResult:
        level = ctx.negotiated.log_level if ctx.negotiated is not None else None
        client = ctx.peer_info.name
        return mcp.CallToolResult(content=[mcp.TextContent(text=f"{client} {level}")])


def headers(session: str | None, user: str | None) -> dict[str, str]:
    """Return the headers of a client."""
    more = {"mcp-session-id": session, "x-user": user}
    return {**HEADERS, **{name: value for name, value in more.items() if value is not None}}


class Workers:
    """Workers in this process, each with its own store on the same Redis; a header names the user."""

    def __init__(self, clients: list[httpx2.AsyncClient], apps: list[HttpApp], stores: list[RedisStore]) -> None:
        self.clients, self.apps, self.stores = clients, apps, stores

    async def post(
        self, worker: int, session: str | None, message: dict[str, Any], user: str | None = None
    ) -> httpx2.Response:
        return await self.clients[worker].post("/mcp", headers=headers(session, user), json=message)

    async def begin(self, worker: int = 0, confirmed: int = 0, user: str | None = None) -> str:
        response = await self.post(worker, None, initialize(LATEST), user)
        assert response.status_code == 200, response.text
        session = response.headers["mcp-session-id"]
        assert (await self.post(confirmed, session, INITIALIZED, user)).status_code == 202
        return session

    async def set_level(self, worker: int, session: str, level: str) -> None:
        wish = request(3, "logging/setLevel", {"level": level})
        assert answer(await self.post(worker, session, wish))["result"] == {}

    async def says(self, worker: int, session: str, user: str | None = None) -> str:
        return text(answer(await self.post(worker, session, request(2, "tools/call", {"name": "x"}), user)))


@asynccontextmanager
async def workers(
    redis: RedisServer,
    count: int = 2,
    make: Callable[[], Server | Provider] = Tools,
    limits: HttpLimits | None = None,
    heartbeat: float | None = None,
    **options: Any,
) -> AsyncIterator[Workers]:
    """Start workers in this process; `heartbeat` is their interval, by default a fraction of the lease."""
    async with AsyncExitStack() as stack:
        clients, apps, stores = [], [], []
        for _ in range(count):
            store = RedisStore(redis.url, **{"timeout": ANSWER_SECONDS, **options})
            store.heartbeat_interval = heartbeat or store.heartbeat_interval
            stores.append(store)
            app = HttpApp(make(), store=store, principal=who, limits=limits or HttpLimits(), allowed_hosts=["*"])
            await stack.enter_async_context(app.lifespan())
            transport = httpx2.ASGITransport(app)
            clients.append(
                await stack.enter_async_context(httpx2.AsyncClient(transport=transport, base_url="http://w"))
            )
            apps.append(app)
        yield Workers(clients, apps, stores)


@asynccontextmanager
async def in_session(redis: RedisServer, **options: Any) -> AsyncIterator[tuple[Workers, str]]:
    """Start two workers, and begin a session at the first."""
    async with workers(redis, **options) as two:
        yield two, await two.begin()


# --- sessions -------------------------------------------------------------------------------------------------


async def test_every_worker_checks_the_principal_of_a_session(redis: RedisServer) -> None:
    async with workers(redis) as two:
        session = await two.begin(user="anna")
        for _ in range(2):
            for worker in (0, 1):
                for other in ("bob", None):
                    assert (await two.post(worker, session, PING, other)).status_code == 404
                    deleted = headers(session, other)
                    assert (await two.clients[worker].delete("/mcp", headers=deleted)).status_code == 404
                assert await two.says(worker, session, user="anna") == "test None"


async def test_a_handshake_may_continue_at_another_worker(redis: RedisServer) -> None:
    async with workers(redis) as two:
        session = await two.begin(0, 1)
        for worker in (0, 1):  # the first worker did not receive `notifications/initialized`
            assert await two.says(worker, session) == "test None"


@pytest.mark.full
async def test_a_session_that_is_never_initialized_expires(redis: RedisServer) -> None:
    async with workers(redis, limits=HttpLimits(handshake=1.5)) as two:
        response = await two.post(0, None, initialize(LATEST))
        confirmed = await two.begin(0, 1)
        await asyncio.sleep(2.5)
        assert (await two.post(1, response.headers["mcp-session-id"], PING)).status_code == 404
        assert (await two.post(0, confirmed, PING)).status_code == 200


async def test_a_session_that_the_store_lost_ends_at_its_worker(redis: RedisServer) -> None:
    async with workers(redis, 1) as one:
        session = await one.begin()
        redis.client.delete(*redis.client.keys("*:s:*"))
        for _ in range(2):
            assert (await one.post(0, session, PING)).status_code == 404


async def test_the_log_level_of_a_client_applies_at_all_workers(redis: RedisServer) -> None:
    async with in_session(redis) as (two, session):
        assert [await two.says(worker, session) for worker in (0, 1)] == ["test None"] * 2
        for worker, level in ((0, "error"), (1, "debug"), (0, "info")):
            await two.set_level(worker, session, level)
            assert [await two.says(one, session) for one in (0, 1)] == [f"test {level}"] * 2


@pytest.mark.full
async def test_an_unused_session_expires_at_all_workers(redis: RedisServer) -> None:
    async with workers(redis, limits=HttpLimits(idle=2)) as two:
        idle, used = await two.begin(), await two.begin()
        for turn in range(6):
            await asyncio.sleep(0.4)
            assert await two.says(turn % 2, used) == "test None"
        for worker in (0, 1):
            assert (await two.post(worker, idle, PING)).status_code == 404
        await until(lambda: [key for key in redis.client.keys("*") if b":s:" in key or b":e:" in key] == [])
        assert (await two.post(0, used, PING)).status_code == 404


@pytest.mark.full
async def test_all_store_keys_expire_and_contain_no_session_id(redis: RedisServer) -> None:
    async with in_session(redis, prefix="mine:") as (two, session):
        await two.says(1, session)
        await two.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await asyncio.sleep(1.2)  # a worker has renewed its lease
        keys = redis.client.keys("*")
        assert keys
        for key in keys:
            assert key.startswith(b"mine:")
            assert redis.client.ttl(key) > 0, key
            assert session.encode() not in key
            if redis.client.type(key) == b"hash":
                assert session.encode() not in repr(redis.client.hgetall(key)).encode()


async def test_two_endpoints_with_different_prefixes_do_not_see_each_other(redis: RedisServer) -> None:
    async with workers(redis, 1, prefix="one:") as one, workers(redis, 1, prefix="two:") as two:
        assert (await two.post(0, await one.begin(), PING)).status_code == 404


@each("kind", [HttpApp, SseApp])
async def test_a_broadcast_reaches_another_endpoint_of_the_server(redis: RedisServer, kind: Any) -> None:
    server = Tools()
    async with workers(redis, 1, make=lambda: server), wires(kind(server)) as http:
        if kind is SseApp:
            wire, _ = await http.open_sse()
        else:
            wire = await http.ask("GET", **await http.begin())
            await wire.until(lambda received: b"event-stream" in received)
        await server.broadcast(lambda client: client.notify_tool_list_changed())
        with anyio.fail_after(ANSWER_SECONDS):
            await wire.until(lambda received: b"tools/list_changed" in received)


FIRST_BROADCAST = """
import asyncio, sys, threading
from mcp_bindgen import v2025_11_25
from mcp_bindgen.cluster import RedisStore
from mcp_bindgen.http import HttpApp

class Tools(v2025_11_25.Server):
    def list_tools(self, params, ctx): ...

class Threads:
    def find_spec(self, name, path=None, target=None):
        if name.endswith(".types"):
            print(name, threading.current_thread() is threading.main_thread())

async def main():
    server = Tools()
    async with HttpApp(server, store=RedisStore(sys.argv[1])).lifespan():
        sys.meta_path.insert(0, Threads())
        await server.broadcast(lambda client: client.notify_tool_list_changed())

asyncio.run(main())
"""


@pytest.mark.full
def test_the_first_broadcast_imports_other_revisions_beside_the_event_loop(redis: RedisServer) -> None:
    ran = execute(sys.executable, "-c", FIRST_BROADCAST, redis.url, code=0)
    imported = dict(line.split() for line in ran.stdout.splitlines())
    assert "mcp_bindgen.v2024_11_05.types" in imported
    assert set(imported.values()) == {"False"}


@pytest.mark.full
async def test_a_worker_starts_without_redis_and_waits_for_it(tmp_path: Path) -> None:
    later = RedisServer(tmp_path)
    async with workers(later, 1, timeout=0.5) as one:
        hello = initialize(LATEST)
        response = await one.post(0, None, hello)
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
        assert not await one.apps[0].is_ready()
        later.start()
        try:
            while (await one.post(0, None, hello)).status_code != 200:
                await asyncio.sleep(0.1)
            while not await one.apps[0].is_ready():
                await asyncio.sleep(0.1)
        finally:
            later.stop()


async def test_a_broadcast_before_the_store_is_known_fails_with_its_error(tmp_path: Path) -> None:
    class Announcing(v2026_07_28.Server):
        info = v2026_07_28.types.Implementation(name="announcing", version="1")

        async def call_tool(self, params: Any, ctx: v2026_07_28.Context) -> Any:
            await self.broadcast(lambda client: client.notify_tool_list_changed())

    async with workers(RedisServer(tmp_path), 1, Announcing) as one:
        message = lone(1, "tools/call", {}, name="announce", arguments={})
        more = {name.replace("_", "-"): value for name, value in stateless(message).items()}
        response = await one.clients[0].post("/mcp", headers={**HEADERS, **more}, json=message)
        assert "the store cannot be reached" in answer(response)["error"]["message"].lower()


async def test_answers_that_came_while_the_event_loop_was_blocked_are_not_late(redis: RedisServer) -> None:
    loop, blocked_seconds = asyncio.get_running_loop(), 0.0
    now = loop.time
    connection = RedisConnection(redis.url, {}, timeout=ANSWER_SECONDS, connections=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: now() + blocked_seconds)
        with redis.paused():
            answering = asyncio.create_task(connection.ready())
            for _ in range(2):
                await asyncio.sleep(0.05)
                blocked_seconds += 2 * ANSWER_SECONDS
                await asyncio.sleep(0.05)
            assert not answering.done()
        assert await answering
        await connection.close()


# --- two versions side by side --------------------------------------------------------------------------------


async def test_fields_added_to_a_record_by_a_newer_version_are_kept(redis: RedisServer) -> None:
    async with in_session(redis) as (two, session):
        (key,) = redis.client.keys("*:s:*")
        record = json.loads(redis.client.hget(key, "record") or b"")
        record["hat"], record["memory"]["colour"] = "new", "red"
        redis.client.hset(key, mapping={"record": json.dumps(record), "shoes": "x"})
        redis.client.hincrby(key, "version", 1)
        for worker, level in ((0, "error"), (1, "debug")):
            await two.set_level(worker, session, level)
        record = json.loads(redis.client.hget(key, "record") or b"")
        assert (record["hat"], record["memory"]["colour"], record["memory"]["logLevel"]) == ("new", "red", "debug")
        assert redis.client.hget(key, "shoes") == b"x"


async def test_a_session_in_a_newer_format_is_kept_and_gets_503(redis: RedisServer) -> None:
    async with in_session(redis) as (two, session):
        (key,) = redis.client.keys("*:s:*")
        redis.client.hset(key, "needs", FORMAT + 1)
        assert (await two.post(1, session, PING)).status_code == 503
        assert redis.client.exists(key)


async def test_a_message_of_an_unknown_kind_is_ignored(redis: RedisServer) -> None:
    async with in_session(redis) as (two, session):
        (key,) = redis.client.keys("*:s:*")
        for box in redis.client.zrange("mcp-bindgen:workers", 0, -1):
            fields = {"kind": "dance", "session": key.rpartition(b":")[2], "step": "left"}
            redis.client.xadd(b"mcp-bindgen:m:" + box, fields)
        await asyncio.sleep(0.2)
        assert await two.says(1, session) == "test None"


JSON = st.dictionaries(
    st.sampled_from(["level", "follows"]), st.one_of(st.integers(0, 3), st.lists(st.integers(0, 4), unique=True))
)


@pytest.mark.full
@given(JSON, JSON, JSON)
@settings(max_examples=examples(50, 500))
def test_changes_of_two_workers_are_merged(base: dict[str, Any], ours: dict[str, Any], theirs: Any) -> None:
    found = merged(base, ours, theirs)
    assert merged(base, base, theirs) == {**base, **theirs} or set(base) - set(theirs)
    for name in {**ours, **theirs}:
        mine, other, before = ours.get(name), theirs.get(name), base.get(name)
        if isinstance(mine, list) and isinstance(other, list):
            known = before if isinstance(before, list) else []
            removed = (set(known) - set(mine)) | (set(known) - set(other))
            assert set(found[name]) == (set(mine) | set(other)) - removed
        elif name in ours and mine != before:
            assert found[name] == mine
        elif name in theirs:
            assert found[name] == other


# --- the store itself -----------------------------------------------------------------------------------------


@asynccontextmanager
async def stores(redis: RedisServer, count: int = 1, **options: Any) -> AsyncIterator[list[RedisStore]]:
    made = [RedisStore(redis.url, **{"timeout": ANSWER_SECONDS, **options}) for _ in range(count)]
    for one in made:
        await one.heartbeat()
    try:
        yield made
    finally:
        for one in made:
            await one.resign()


def events(*numbers: int, size: int = 3) -> list[StoredEvent]:
    return [StoredEvent(number, b"%d" % number * size) for number in numbers]


async def test_a_repeated_write_is_stored_once(redis: RedisServer) -> None:
    async with stores(redis) as (store,):
        await store.save("s", b"x")
        for _ in range(3):
            await store.write("s", "a", events(1, 2), b"[1]")
        assert await store.read("s", "a", 0) == events(1, 2)
        for number in (3, 4):  # the first of these writes ends the stream
            await store.write("s", "a", events(number), None)
        assert await store.read("s", "a", 0) == events(1, 2, 3)


async def test_only_one_of_two_conflicting_changes_is_stored(redis: RedisServer) -> None:
    async with stores(redis, 2) as (one, other):
        await one.create("s", 60)
        first = await one.update("s", b"first", 0)
        assert first is not None
        assert first.record is None
        late = await other.update("s", b"late", 0)
        assert late is not None
        assert (late.version, late.record) == (1, b"first")
        await one.write("s", "a", events(1), b"[1]")
        await other.write("s", "a", events(2), b"[1]")  # the stream belongs to the first worker
        assert await one.read("s", "a", 0) == events(1)
        await asyncio.gather(*(other.fail("s", "a", one.worker, b"dead") for _ in range(5)))
        await one.write("s", "a", events(2), None)
        assert [event.data for event in await one.read("s", "a", 0)] == [b"111", b"dead"]
        told = await asyncio.gather(*(store.deliver([("s", 1, b"news")], 0, 1) for store in (one, other) * 3))
        assert sorted(found.number for (found,) in told) == [0, 0, 0, 0, 0, 1]


async def test_a_removed_worker_begins_no_stream_until_it_has_a_new_name(redis: RedisServer) -> None:
    async with stores(redis, 2) as (one, other):
        await one.create("s", 60)
        await other.write("s", "a", events(1), b"[1]")
        await one.fail("s", "a", other.worker, b"dead")
        await one.remove_worker(other.worker)
        await refused(other.write("s", "b", events(1), b"[2]"), StoreUnavailable)
        assert await one.span("s", "b") is None
        await other.write("s", "a", events(2), None)  # the stream has ended, and its client was notified
        assert [event.data for event in await one.read("s", "a", 0)] == [b"111", b"dead"]
        other.new_name()
        await other.heartbeat()
        await other.write("s", "b", events(1), b"[2]")
        assert await one.span("s", "b") == (1, 1)


@pytest.mark.full
async def test_workers_with_an_expired_lease_are_dead_unless_all_leases_expired(redis: RedisServer) -> None:
    async with stores(redis, 2, lease=0.4) as (one, other):
        while not (beat := await one.heartbeat()).dead:
            await asyncio.sleep(0.1)
        assert list(beat.dead) == [other.worker]
        await one.remove_worker(other.worker)
        assert not (await other.heartbeat()).is_known
        other.new_name()
        assert (await other.heartbeat()).is_known
        await asyncio.sleep(0.6)  # all leases run out
        assert list((await one.heartbeat()).dead) == []
        assert (await other.heartbeat()).is_known


@pytest.mark.full
async def test_signing_keys_are_shared_by_all_workers_and_rotated(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_bindgen.cluster.store._KEY_DELAY_SECONDS", 0.8)

    async with stores(redis, 2, rotate=2) as (one, other):
        first = list(await one.signing_keys(1.2))
        assert len(first) == 1
        assert list(await other.signing_keys(1.2)) == first
        await asyncio.sleep(2.4)
        second = list(await one.signing_keys(1.2))
        assert second[0] == first[0]  # it stays in use until all workers have the next key
        assert len(second) == 2
        await asyncio.sleep(1.2)
        assert list(await other.signing_keys(1.2)) == second[::-1]
        await asyncio.sleep(1.2)
        assert first[0] not in await one.signing_keys(1.2)


async def test_request_state_signed_by_one_worker_is_verified_by_all(redis: RedisServer) -> None:
    class New(v2026_07_28.Server):
        info = v2026_07_28.types.Implementation(name="new", version="1")

    async with workers(redis, make=New) as two:
        first, second = [app.endpoint.signer(app.servers[0]) for app in two.apps]
        assert second.verify(first.sign("x", 1), 1) == "x"
    assert [app.servers[0].request_state_signer for app in two.apps] == [None, None]  # nothing is left in servers
    with pytest.raises(ProtocolError):  # a signer without the shared key
        first.verify(RequestStateSigner().sign("x", 1), 1)
    mine = RequestStateSigner([b"0123456789abcdef"])
    New.request_state_signer = mine
    async with workers(redis, 1, make=New) as one:
        assert one.apps[0].endpoint.signer(one.apps[0].servers[0]) is mine


async def test_a_dpop_proof_is_accepted_once_across_all_workers(redis: RedisServer) -> None:
    async with stores(redis, 2) as made:
        caches = [RedisReplayCache(store) for store in made]
        seen = await asyncio.gather(*(cache.add(b"proof", "key", 60) for cache in caches * 3))
        assert sorted(seen) == [False] * 5 + [True]
        assert await caches[0].add(b"other", "key", 1)
        assert not await caches[1].add(b"other", "key", 1)
        await asyncio.sleep(1.1)
        assert await caches[1].add(b"other", "key", 60)


@pytest.mark.full
@pytest.mark.parametrize("skews", [(-10.0, -10.0), (10.0, 10.0), (0.0, -1.5)])
async def test_a_dpop_proof_is_accepted_once_despite_clock_skew(redis: RedisServer, skews: tuple[float, float]) -> None:
    """The clocks of two workers differ from that of Redis, and from each other."""

    async with stores(redis, 2) as made:
        prover, url = Prover(), "https://example.org/mcp"
        both = [
            ProofVerifier(window=1, clock=partial(_shifted, skew), replay=RedisReplayCache(store))
            for store, skew in zip(made, skews, strict=True)
        ]
        proof = prover.proof(url, "token", iat=_shifted(skews[0]) - 0.5).encode()
        begun, taken = time.monotonic(), 0
        while time.monotonic() - begun < 2:
            for verifier in both:
                with suppress(InvalidProof):
                    await verifier.verify(proof, "POST", (url,), "token", prover.thumbprint)
                    taken += 1
            await asyncio.sleep(0.02)
        assert taken == 1
        assert 0 < redis.client.pttl("mcp-bindgen:proofs") < 130_000


def _shifted(seconds: float) -> float:
    return time.time() + seconds


async def test_dpop_proofs_are_counted_per_key_and_refused_above_the_limits(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "mcp_bindgen.cluster.store"
    monkeypatch.setattr(f"{module}._MAX_PROOFS_OF_OWNER", 3)
    monkeypatch.setattr(f"{module}._MAX_PROOFS", 7)

    async with stores(redis, 2) as made:
        caches = [RedisReplayCache(store) for store in made]

        async def added(owner: str, *numbers: int, seconds: float = 60) -> list[bool | None]:
            found: list[bool | None] = []
            for number in numbers:
                try:
                    found.append(await caches[number % 2].add(f"{owner} {number}".encode(), owner, seconds))
                except StoreUnavailable:
                    found.append(None)
            return found

        assert await added("short", 1, 2, 3, seconds=2) == [True] * 3
        assert await added("greedy", 1, 2, 3, 4, 5) == [True] * 3 + [None] * 2
        assert await added("greedy", 1, 2, 3) == [False] * 3  # known proofs are recognized, also beyond the limit
        assert await added("third", 1, 2, 3, 4) == [True, True, True, None]
        assert await added("fourth", 1, 2, 3) == [True, True, None]  # the total is reached: this is the owner's share
        await asyncio.sleep(2.1)
        assert await added("short", 4, 5) == [True] * 2
        for number in range(20):
            await added(f"sybil{number}", 1)
        assert redis.client.zcard("mcp-bindgen:proofs") <= 14


def test_a_store_url_with_another_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="redis://"):
        RedisStore("postgres://localhost")


async def test_no_secret_of_the_url_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    await refused(RedisStore("redis://user:hunter2@127.0.0.1:1/0", timeout=0.5).heartbeat(), StoreUnavailable)
    assert "Redis is away" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_slow_reader_gets_every_event_that_two_workers_add_concurrently(redis: RedisServer) -> None:
    async with stores(redis, 2) as (one, other):
        await one.create("s", 60)
        stream = Stream("s", LISTEN_STREAM, store=one, persisted=True)
        said = [b"%d" % number for number in range(1, 6)]
        with stream.reading():
            await stream.put(said[0])
            assert await other.add("s", said[1]) == 2  # the stream has not yet processed the message about this event
            await stream.put(said[2])
            stream.advance(2, said[1])
            await stream.put(said[3])
            stream.advance(await other.add("s", said[4]), said[4])
            read: list[StoredEvent] = []
            while len(read) < len(said):
                read += await stream.read(read[-1].number if read else 0)
        assert read == [StoredEvent(number, data) for number, data in enumerate(said, 1)]


async def test_a_repeatedly_refused_client_leaves_nothing_in_the_store(redis: RedisServer) -> None:
    async with workers(redis, limits=HttpLimits(sessions=1)) as both:
        session = await both.begin(0)
        await both.begin(1, confirmed=1)
        before = [redis.client.hlen(one) for one in sorted(redis.client.keys("*:s:*"))]
        for _ in range(3):
            assert (await both.post(1, session, PING)).status_code == 429
        assert [redis.client.hlen(one) for one in sorted(redis.client.keys("*:s:*"))] == before


async def test_a_session_initialized_at_another_worker_is_not_evicted(redis: RedisServer) -> None:
    async with workers(redis, limits=HttpLimits(sessions=1)) as both:
        session = await both.begin(0, confirmed=1)
        assert (await both.post(0, None, initialize(LATEST))).status_code == 429
        assert await both.says(1, session) == "test None"


def test_only_responses_cancellations_and_progress_go_to_other_workers() -> None:
    batch: list[dict[str, Any]] = [
        PING,
        notification("notifications/roots/list_changed"),
        notification("notifications/cancelled", {"requestId": 2}),
        notification("notifications/progress", {"progressToken": 3, "progress": 1}),
        {"jsonrpc": "2.0", "id": 4, "result": {}},
    ]
    found = for_other_workers(json.dumps(batch).encode())
    assert (json.loads(found.body), found.epochs, found.cancelled) == (batch[2:], {0}, [2])
    assert for_other_workers(json.dumps(batch[2]).encode()).body == json.dumps(batch[2]).encode()


# --- subscriptions --------------------------------------------------------------------------------------------


class Shop(v2026_07_28.Server):
    """Server with a resource that changes."""

    info = v2026_07_28.types.Implementation(name="shop", version="1")

    async def list_resources(self, params: Any, ctx: Any) -> v2026_07_28.types.ListResourcesResult:
        return v2026_07_28.types.ListResourcesResult(resources=[], ttl_ms=0)


class Customer(v2026_07_28.Client):
    """Client that lists the changed resources in order; handlers in threads (`def`) would not keep the order."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.uri)


async def _update(app: HttpApp, number: int | str) -> None:
    await app.servers[0].broadcast(lambda client: client.notify_resource_updated(f"note://1/{number}"))


@asynccontextmanager
async def subscribed(two: Workers, client: Customer, *uris: str) -> AsyncIterator[list[int]]:
    """Connect a client that listens; yield the index of its worker, which a test may change."""
    reached = [0]

    async def chosen(scope: Any, receive: Any, send: Any) -> None:
        await two.apps[reached[0]](scope, receive, send)

    wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=list(uris) or ["note://1"])
    async with listening(chosen) as (url, _), client.connected(f"{url}/mcp"), client.subscribed(wanted):
        yield reached


async def _stop(two: Workers) -> None:
    two.apps[0].leave()


async def _take_for_dead(two: Workers) -> None:
    """Remove the first worker at the second, and wait until the first has noticed."""
    name = two.stores[0].worker
    await two.stores[1].remove_worker(name)
    await until(lambda: two.stores[0].worker != name)


@pytest.mark.full
@pytest.mark.parametrize("failing", [None, "hand_over", "take_over"])
@pytest.mark.parametrize("leave", [_stop, _take_for_dead])
async def test_another_worker_continues_a_subscription(
    redis: RedisServer,
    leave: Callable[[Workers], Awaitable[None]],
    failing: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Subscriptions of a worker end because it stops, or because the other workers consider it dead."""
    monkeypatch.setattr(client_module, "_SHORTEST_PAUSE", 0.4)
    errors = iter([StoreUnavailable(), StoreUnavailable()])
    run_script, attempt = RedisConnection.run, RedisConnection.attempt
    names: ContextVar[str] = ContextVar("names", default="")

    async def named(self: RedisConnection, name: str, *arguments: Any, **options: Any) -> Any:
        names.set(name)
        return await run_script(self, name, *arguments, **options)

    async def fail_first(self: RedisConnection, work: Callable[[], Awaitable[Any]], **options: Any) -> Any:
        for error in errors if names.get() == failing else ():
            self.is_away = True
            raise error
        return await attempt(self, work, **options)

    client = Customer()
    async with workers(redis, make=Shop, lease=2.0) as two, subscribed(two, client) as reached:
        await _update(two.apps[1], 1)
        await until(lambda: len(client.heard) == 1)
        reached[0] = 1
        if failing is not None:  # the store is unavailable for a moment
            monkeypatch.setattr(RedisConnection, "run", named)
            monkeypatch.setattr(RedisConnection, "attempt", fail_first)
        await leave(two)
        for number in (2, 3):
            await _update(two.apps[1], number)
        await until(lambda: len(client.heard) == 3)
        assert len(two.apps[1].servers[0].audience) == 1
        await _update(two.apps[0], 4)
        await until(lambda: len(client.heard) == 4)
    assert client.heard == [f"note://1/{number}" for number in (1, 2, 3, 4)]


class Fenced(Tools):
    """Server that refuses a subscription to one of its resources."""

    async def list_resources(self, params: Any, ctx: Any) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[])

    async def subscribe(self, params: Any, ctx: Any) -> mcp.EmptyResult:
        if params.uri == "note://1/secret":
            raise ProtocolError(-32002, "Resource not found")
        return mcp.EmptyResult()

    async def unsubscribe(self, params: Any, ctx: Any) -> mcp.EmptyResult:
        return mcp.EmptyResult()


async def test_a_continued_subscription_gets_no_events_of_a_refused_resource(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_SHORTEST_PAUSE", 0.6)

    client, uris = Customer(), ["note://1/1", "note://1/secret", "note://1/2"]
    async with workers(redis, make=Fenced, lease=2.0) as two, subscribed(two, client, *uris):
        await _take_for_dead(two)
        for uri in ("secret", 1):
            await _update(two.apps[1], uri)
        await until(lambda: len(client.heard) == 1)
        await _update(two.apps[1], 2)
        await until(lambda: "note://1/2" in client.heard)
    assert client.heard == ["note://1/1", "note://1/2"]


async def test_a_subscription_continues_after_the_store_loses_its_data(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_SHORTEST_PAUSE", 0.02)

    client = Customer()
    async with workers(redis, make=Shop, heartbeat=0.1) as two, subscribed(two, client):
        for number in range(5):
            await _update(two.apps[1], number)
        await until(lambda: len(client.heard) == 5)
        known = {store.worker for store in two.stores}
        redis.client.flushall()
        await until(lambda: known.isdisjoint(store.worker for store in two.stores))
        await until(lambda: redis.client.zcard("mcp-bindgen:workers") == 2)
        await until(lambda: any(not getattr(one, "is_ending", True) for one in two.apps[0].servers[0].audience))
        is_sent = False
        while not is_sent:  # the other worker has to read that it is known
            with suppress(StoreUnavailable):
                await _update(two.apps[1], 6)  # numbers start again
                is_sent = True
            await anyio.sleep(0.01)
        await until(lambda: len(client.heard) == 6)


async def test_a_handover_is_taken_once_and_only_with_its_own_key(redis: RedisServer) -> None:
    store = RedisStore(redis.url)
    redis.client.hset("mcp-bindgen:state", "broadcast", 2000)
    for told in (7, 9):
        await store.hand_over("a", told)
    assert [await store.take_over(key) for key in ("b", "a", "a", "a")] == [None, 7, 9, None]
    redis.client.rpush("mcp-bindgen:h:c", *range(1099))
    await store.hand_over("c", 1099)
    assert await store.take_over("c") == 100  # at most 1,000 of them
    assert 0 < redis.client.pttl("mcp-bindgen:h:c") <= 60_000
    await store.resign()


async def test_a_handover_is_specific_to_the_principal_client_and_filter(redis: RedisServer) -> None:
    async with workers(redis, make=Shop) as two:
        async with anyio.create_task_group() as tasks:
            for user, name, uri in product((None, "anna", "bob"), ("one", "two"), ("note://1", "note://2")):
                wanted = lone(1, "subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
                wanted["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = name
                known = headers(None, user) | {key.replace("_", "-"): one for key, one in stateless(wanted).items()}
                tasks.start_soon(partial(two.clients[0].post, "/mcp", headers=known, json=wanted))
            await until(lambda: len(two.apps[0].servers[0].audience) == 12)
            two.apps[0].leave()
        assert len(redis.client.keys("mcp-bindgen:h:*")) == 12


async def test_a_stopping_worker_ends_a_new_subscription_and_hands_it_over(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_SHORTEST_PAUSE", 0.02)

    client = Customer()
    async with workers(redis, make=Shop) as two, subscribed(two, client) as reached:
        two.apps[0].leave()
        await _update(two.apps[1], 1)
        await until(lambda: client.changes > 3)  # the client reconnects to the same worker several times
        await _update(two.apps[1], 2)
        reached[0] = 1
        await until(lambda: len(client.heard) >= 2)
        await _update(two.apps[1], 3)
        await until(lambda: len(client.heard) >= 3)
    assert client.heard == [f"note://1/{number}" for number in (1, 2, 3)]


@pytest.mark.full
async def test_a_stopping_worker_answers_requests_and_makes_streams_reconnect(redis: RedisServer) -> None:
    async with in_session(redis) as (two, session):
        two.apps[0].leave()
        assert (await two.says(0, session), await two.says(0, await two.begin(worker=0))) == ("test None", "test None")
        stream = await two.clients[0].get("/mcp", headers=headers(session, None))
        assert (stream.status_code, "retry: 500" in stream.text) == (200, True)
    async with workers(redis) as two:
        two.apps[0].leave()
        assert await two.says(1, session) == "test None"
