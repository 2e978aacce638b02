"""Limits of a principal in a shared Redis, the bytes counted for it, and rows in Redis that cannot be read."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from typing import Any

import pytest

from mcp_bindgen.cluster.store import MESSAGE_BYTES, SESSION_BYTES
from mcp_bindgen.http import HttpLimits, StoreLimits
from mcp_bindgen.http.server.errors import StoreFull
from mcp_bindgen.http.server.event_store import StoredEvent, account_of
from tests.cluster.test_shared_store import headers, stores, workers
from tests.harness.checked_connections import initialize, refused, request, until
from tests.harness.http_wires import LATEST
from tests.harness.redis_server import RedisServer, redis_server

PREFIX = "mcp-bindgen:"


def recounted(redis: RedisServer) -> tuple[Counter[str], dict[str, int]]:
    """Return the bytes of each account, counted from the sessions that exist, and the bytes that Redis has noted."""
    client, found = redis.client, Counter[str]()
    for key in client.keys(f"{PREFIX}s:*"):
        fields = client.hgetall(key)
        streams = sum(len(value) for name, value in fields.items() if name.startswith(b"s:"))
        rows = client.xrange(key.replace(b":s:", b":e:"))
        data = sum(len(row[b"d"]) for _, row in rows)
        assert data == int(fields.get(b"size", 0))
        found[fields[b"who"].decode()] += SESSION_BYTES + len(fields.get(b"record", b"")) + streams + data
        held = Counter(row[b"s"].decode() for _, row in rows)
        for name, text in fields.items():
            if name.startswith(b"s:"):
                assert f'"h":{held[name[2:].decode()]}'.encode() in text
    said = {
        name.decode(): int(score) for name, score in client.zrange(f"{PREFIX}counted_bytes", 0, -1, withscores=True)
    }
    return found, said


def check(redis: RedisServer, limits: StoreLimits, slack: int = 0) -> None:
    found, said = recounted(redis)
    assert (said.pop("*", 0), said) == (sum(found.values()), dict(found))
    assert all(size <= limits.size_of_principal + slack for size in said.values())
    assert sum(said.values()) <= limits.all_size + slack


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
async def test_stored_bytes_are_counted_correctly_after_random_operations(redis: RedisServer, seed: int) -> None:
    """Run random operations, expiry and deaths of workers: the counts match the data and stay within the limits."""
    chance = random.Random(seed)
    limits = StoreLimits(events=6, size=2000, size_of_principal=12_000, all_size=30_000)
    users = ["anna", "bob", "carl", None]

    async with stores(redis, 2, limits=limits) as made:
        last: dict[tuple[str, str], int] = {}
        for turn in range(250):
            store, session = chance.choice(made), f"{chance.choice(users)}{chance.randrange(3)}"
            user = next((name for name in users if session.startswith(str(name))), None)
            stream = f"{store.worker}{chance.randrange(3)}"
            data = bytes(chance.choice([0, 10, 300, 1500, 2500, 20_000])).replace(b"\0", b"x") or b"y"
            try:
                match chance.randrange(14):
                    case 0 | 1:
                        if redis.client.exists(f"{PREFIX}s:{session}") == 0:
                            await store.create(session, 60, user, 0 if user is None else 2)
                    case 2:
                        await store.update(
                            session, data, int(redis.client.hget(f"{PREFIX}s:{session}", "version") or 0)
                        )
                    case 3 | 4 | 5 | 6:
                        number = last[session, stream] = last.get((session, stream), 0) + 1
                        pending = chance.choice([None, b"[1]", b'["%s"]' % data])
                        await store.write(session, stream, [StoredEvent(number, data)], pending)
                    case 7 | 8:
                        await store.add(session, data)
                    case 9:
                        await store.attach(session, chance.choice(["0", stream]), "token", None, True)
                    case 10:
                        await store.forget(session)
                    case 11:  # the record expires without a message from Redis
                        for kind in "se":
                            redis.client.delete(f"{PREFIX}{kind}:{session}")
                        redis.client.zadd(f"{PREFIX}due", {f"{account_of(user)}|{session}": 1}, xx=True)
                        await store.heartbeat()
                    case 12:  # a worker dies
                        for key, name, _ in await store.unfinished(store.worker):
                            await store.fail(key, name, store.worker, b"dead")
                        await store.remove_worker(store.worker)
                        store.new_name()
                        await store.heartbeat()
                    case _:
                        number = turn + 1
                        await store.deliver([(session, 0, data)], 0, number)
            except StoreFull:
                pass
            check(redis, limits, slack=1000)
        for user in users:
            for number in range(3):
                await made[0].forget(f"{user}{number}")
        check(redis, limits)
        assert [key for key in redis.client.keys("*") if key[len(PREFIX) :][:2] in (b"a:", b"f:", b"s:", b"e:")] == []
        assert redis.client.zcard(f"{PREFIX}due") == 0


@pytest.mark.full
async def test_a_principal_that_floods_the_store_does_not_affect_other_principals(tmp_path: Any) -> None:
    """Write far more events than Redis has memory, in sessions on two workers, some abandoned or ended."""
    limits = StoreLimits(size=1 << 20, size_of_principal=4 << 20, all_size=24 << 20)
    options = ("--maxmemory", "32mb", "--maxmemory-policy", "noeviction", "--appendonly", "no")

    with redis_server(tmp_path, *options) as redis:
        async with stores(redis, 2, limits=limits) as made:
            await made[0].create("calm", 60, "anna", 100)
            await made[0].write("calm", "a", [StoredEvent(1, b"kept")], b"[1]")
            for turn in range(300):
                store, session = made[turn % 2], f"s{turn}"
                try:
                    await store.create(session, 60, "bob", 100)
                    await store.update(session, b"{}", 0, ready=True)
                except StoreFull:
                    session = f"s{turn % 50}"
                await store.write(
                    session, f"{turn}", [StoredEvent(1, bytes(400_000)), StoredEvent(2, bytes(100_000))], None
                )
                if turn % 7 == 0:
                    await store.forget(session)
                if turn % 10 == 0:
                    await made[1].create(f"anna{turn}", 60, "anna", 100)
                    assert await made[1].refresh("calm", 0) is not None
                    assert redis.client.info("memory")["used_memory"] < 20 << 20
            assert await made[1].read("calm", "a", 0) == [StoredEvent(1, b"kept")]
            check(redis, limits)


async def test_eviction_removes_the_oldest_events_of_the_full_or_largest_principal(redis: RedisServer) -> None:
    limits = StoreLimits(size_of_principal=20_000, all_size=36_000)

    async with stores(redis, limits=limits) as (store,):
        for session in ("a1", "a2", "b1", "c1"):
            await store.create(session, 60, session[0], 9)
        for turn in range(1, 5):
            for session in ("a1", "a2"):
                await store.write(session, "x", [StoredEvent(turn, bytes(2000))], b"")
                await asyncio.sleep(0.002)
        assert [await store.span(session, "x") for session in ("a1", "a2")] == [(1, 4), (1, 4)]
        await store.write("a2", "x", [StoredEvent(5, bytes(4000))], b"")
        assert [await store.span(session, "x") for session in ("a1", "a2")] == [(2, 4), (2, 5)]
        await store.write("b1", "x", [StoredEvent(1, bytes(9000))], b"")
        await store.write(
            "c1", "x", [StoredEvent(1, bytes(12_000))], b""
        )  # exceeds the total: evicts from a, the largest
        assert await store.span("b1", "x") == await store.span("c1", "x") == (1, 1)
        check(redis, limits)


async def test_records_and_request_ids_count_and_are_refused_above_the_limit(redis: RedisServer) -> None:
    async with stores(redis, limits=StoreLimits(size_of_principal=10_000)) as (store,):
        await store.create("s", 60, "anna", 9)
        await store.create("t", 60, "anna", 9)
        await store.write("t", "a", [StoredEvent(1, bytes(1000))], None)
        assert await store.update("s", bytes(6000), 0) is not None
        await refused(store.update("t", bytes(6000), 0), StoreFull)
        assert await store.update("t", bytes(10), 0) is not None
        await refused(store.write("t", "b", [], b'["%s"]' % bytes(6000)), StoreFull)
        assert await store.span("t", "b") is None
        await store.create("u", 60, "bob", 9)
        check(redis, StoreLimits(size_of_principal=10_000))


async def test_a_request_id_that_is_too_long_is_refused(redis: RedisServer) -> None:
    async with workers(redis, 1) as one:
        session = await one.begin()
        for id_, status in (("i" * 65_000, 200), ("i" * 66_000, 413)):
            assert (await one.post(0, session, request(id_, "ping"))).status_code == status


async def test_sessions_of_a_principal_are_counted_for_all_workers(redis: RedisServer) -> None:
    async with workers(redis, 3, limits=HttpLimits(sessions_of_principal=3)) as three:
        hello = initialize(LATEST)
        idle = (await three.post(0, None, hello, "anna")).headers["mcp-session-id"]  # it is never initialized
        kept = [await three.begin(worker, worker, user="anna") for worker in (1, 2, 2)]
        assert (await three.post(1, idle, request(2, "ping"), "anna")).status_code == 404
        for worker in range(3):
            refused = await three.post(worker, None, hello, "anna")
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
        assert await three.says(0, await three.begin(0, user="bob"), user="bob") == "test None"
        assert (await three.clients[0].delete("/mcp", headers=headers(kept[0], "anna"))).status_code == 204
        assert await three.says(0, await three.begin(0, user="anna"), user="anna") == "test None"
        for number in range(5):  # clients without a principal are limited by the bytes stored for them
            await three.begin(number % 3, number % 3)
        check(redis, StoreLimits())


async def test_messages_of_a_principal_are_bounded_and_counted_until_they_are_read(redis: RedisServer) -> None:
    async with stores(redis, 2, limits=StoreLimits(messages_of_principal=4000)) as (one, other):
        for session, user in (("s", "anna"), ("t", "bob")):
            await one.create(session, 60, user, 9)
            await one.update(session, b"{}", 0)
            await other.load(session)
        await one.route("s", None, bytes(3000))
        await refused(one.route("s", None, bytes(1000)), StoreFull)
        await one.route("t", None, bytes(1000))
        box = f"{PREFIX}m:{other.worker}"
        other.receive_after(0)
        messages, _ = await other.receive()
        assert [message.session for message in messages] == ["s", "t"]
        assert redis.client.xlen(box) == redis.client.exists(f"{PREFIX}q:{other.worker}") == 0
        for _ in range(100):  # the reader at the other worker fetches from the stream the events that its messages omit
            await one.add("s", bytes(300))
            await other.attach("s", "0", "token", None, True)
        assert redis.client.xlen(box) <= 4000 // MESSAGE_BYTES
        assert (await other.positions([("s", "0")]))[0].last == 100  # type: ignore[union-attr]
        await one.remove_worker(other.worker)
        assert redis.client.exists(f"{PREFIX}q:{other.worker}") == 0


# --- unreadable rows ------------------------------------------------------------------------------------------


def told(redis: RedisServer) -> list[int]:
    """Return the number of `list_changed` events stored for each session."""
    stored = [redis.client.xrange(key) for key in redis.client.keys("*:e:*")]
    return [sum(b"list_changed" in event[b"d"] for _, event in events) for events in stored]


@pytest.mark.parametrize("place", ["*", "7-1"])
async def test_an_unreadable_broadcast_is_skipped_and_logged_once_per_worker(
    redis: RedisServer, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    async with workers(redis) as two:
        sessions = [await two.begin(worker, worker) for worker in (0, 1)]
        caplog.set_level(logging.WARNING)
        redis.client.xadd(f"{PREFIX}topic", {"x": "y"}, id=place)
        for box in redis.client.zrange(f"{PREFIX}workers", 0, -1):
            redis.client.xadd(f"{PREFIX}m:{box.decode()}", {b"\xff": b"\xff"})
        await asyncio.sleep(0.5)
        for _ in range(2):
            await two.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await until(lambda: told(redis) == [2, 2])
        for worker, session in enumerate(sessions):
            assert await two.says(1 - worker, session) == "test None"
    said = [record for record in caplog.records if "cannot be read" in record.getMessage()]
    assert 1 <= len(said) <= 2, caplog.text  # once for each worker
    assert "Traceback" not in caplog.text


async def test_an_unreadable_session_record_ends_the_session(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with workers(redis) as two:
        for garbage in (b"\xff", b"[]", b"{}", b'{"principal": null, "ready": 1, "memory": {"revision": 5}}'):
            session = await two.begin()
            (key,) = redis.client.keys("*:s:*")
            redis.client.hset(key, "record", garbage)
            redis.client.hset(key, "s:x", garbage)
            redis.client.hincrby(key, "version", 1)
            for worker in (0, 1):
                response = await two.post(worker, session, request(1, "ping"))
                assert response.status_code == 404, response.text
            redis.client.delete(key)
    assert "Traceback" not in caplog.text


async def test_workers_tolerate_unreadable_signing_keys_and_stream_state(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.client.set(f"{PREFIX}keys", "[5, {}]")
    async with stores(redis, 1) as (dead,), workers(redis, lease=3) as two:
        assert all(len(key) == 32 for key in await dead.signing_keys(1))
        session = await two.begin()
        await dead.load(redis.client.keys("*:s:*")[0].decode().rpartition(":")[2])
        key = redis.client.keys("*:s:*")[0].decode().rpartition(":")[2]
        await dead.write(key, "x", [StoredEvent(1, b"{}")], b"garbage")
        redis.client.zadd(f"{PREFIX}workers", {dead.worker: 1})
        await until(lambda: redis.client.zscore(f"{PREFIX}workers", dead.worker) is None)
        (_, ended) = await dead.read(key, "x", 0)
        assert b"has died" in ended.data
        assert await two.says(1, session) == "test None"
    assert "Traceback" not in caplog.text


async def test_eviction_tries_a_bounded_number_of_accounts(redis: RedisServer) -> None:
    """Many accounts hold records that eviction cannot free; a script that tried them all would block every worker."""

    async with stores(redis, limits=StoreLimits(all_size=1_000_000)) as (store,):
        redis.client.zadd(
            f"{PREFIX}counted_bytes", {"*": 5_000_000, **{f"user{number}": 1000 for number in range(5000)}}
        )
        redis.client.config_resetstat()
        await refused(store.create("s", 60, "anna", 9), StoreFull)
        assert redis.client.info("commandstats")["cmdstat_zrevrange"]["calls"] <= 2000


GARBAGE = (b"\xff", b"", b"{}", b"1e308", b"9" * 400, b"-5")


@pytest.mark.full
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_in_the_shared_state_stops_no_worker(
    redis: RedisServer, caplog: pytest.LogCaptureFixture, garbage: bytes
) -> None:
    client = redis.client

    async with workers(redis, 1, heartbeat=0.1) as one, stores(redis) as (store,):
        spoilt, session = await one.begin(user="anna"), await one.begin(user="bob")
        (key,) = (key for key in client.keys("*:s:*") if client.hget(key, "who") == account_of("anna").encode())
        (worker,) = {name.decode() for name in client.zrange(f"{PREFIX}workers", 0, -1)} - {store.worker}
        for field in ("version", "broadcast", "size", "begun", "idle", "s:0"):
            client.hset(key, field, garbage)
        for field in ("broadcast", "bytes", "heartbeat", "broadcast:2025-11-25"):
            client.hset(f"{PREFIX}state", field, garbage)
        for name in ("due", "workers", "proofs"):
            client.zadd(f"{PREFIX}{name}", {garbage: 1})
        client.sadd(f"{PREFIX}o:{worker}", garbage)
        client.hset(f"{PREFIX}provers", mapping={"": garbage, "owner": garbage})
        client.hset(f"{PREFIX}a:{account_of('anna')}", key.rpartition(b":")[2], garbage)
        client.hset(f"{PREFIX}q:{worker}", "", garbage)
        client.xadd(f"{PREFIX}m:{worker}", {"kind": "end", "session": "", "bytes": garbage})
        client.rpush(f"{PREFIX}h:listener", garbage)
        await asyncio.sleep(0.7)
        assert await store.claim("proof", "owner", 60)
        assert await store.take_over("listener") is None
        assert await store.unfinished(worker) == []
        before = client.xlen(f"{PREFIX}m:{worker}")
        for _ in range(2):
            await one.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await until(lambda: told(redis) == [2, 2])
        assert before == 0
        for known, user in ((spoilt, "anna"), (session, "bob"), (await one.begin(user="carl"), "carl")):
            assert await one.says(0, known, user) == "test None"
    assert "Traceback" not in caplog.text
    assert sum(record.levelno >= logging.ERROR for record in caplog.records) == 0, caplog.text


@pytest.mark.full
@pytest.mark.parametrize("place", ["9007199254740993-0", "18446744073709551615-18446744073709551615"])
async def test_broadcasts_continue_after_an_entry_with_the_highest_id(redis: RedisServer, place: str) -> None:
    async with workers(redis, heartbeat=0.1) as two:
        redis.client.xadd(f"{PREFIX}topic", {"x": "y"}, id=place)
        await two.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await asyncio.sleep(0.5)
        for worker in (0, 1):
            await two.begin(worker, worker)
        await two.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await until(lambda: told(redis) == [1, 1])


async def test_sessions_get_broadcasts_after_redis_loses_their_newest_records(redis: RedisServer) -> None:
    async with workers(redis, 1) as one:
        for _ in range(2):
            await one.begin()
        for key in redis.client.keys("*:s:*"):
            redis.client.hincrby(key, "version", -1)
        await one.apps[0].servers[0].broadcast(lambda client: client.notify_tool_list_changed())
        await until(lambda: told(redis) == [1, 1])


@pytest.mark.full
async def test_a_lost_account_is_subtracted_from_the_total(redis: RedisServer) -> None:
    async with stores(redis) as (store,):
        await store.create("s", 60, "anna", 9)
        await store.create("t", 60, "bob", 9)
        redis.client.delete(f"{PREFIX}a:{account_of('anna')}")
        await store.forget("s")
        check(redis, StoreLimits())
