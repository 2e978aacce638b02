"""Workers that die or stop, and Redis that is away, slow or full: no message that a client received is lost."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.harness.checked_connections import refused, request, until
from tests.harness.cluster import Cluster, Lost, Patient, Reader, cluster, connections, meeting, numbers, patient, text
from tests.harness.processes import PATIENCE, alive

NOTE = "note://1"
LEASE = 4.0


@pytest.fixture
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("two")) as made:
        yield made


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two workers that count as dead after `LEASE` seconds of silence."""
    with cluster(tmp_path_factory.mktemp("mortal"), lease=LEASE) as made:
        yield made


@pytest.fixture
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two workers that wait for Redis for two seconds only."""
    with cluster(tmp_path_factory.mktemp("impatient"), timeout=2.0) as made:
        yield made


def ports(cluster: Cluster) -> list[int]:
    return list(cluster.workers)


# --- kill -9 at each stage of a request -----------------------------------------------------------------------


@pytest.mark.full
async def test_a_request_gets_an_error_when_its_worker_dies(mortal: Cluster) -> None:
    async with meeting(mortal) as (client, first, second):
        reader = Reader(client, client.calling("count", to=1000, delay_ms=20))
        with suppress(httpx2.HTTPError):
            await reader.read(mortal.at(first), 10, lambda: mortal.kill(first))
        said = await reader.read(mortal.at(second))
        assert numbers(said) == list(range(1, len(said)))
        assert "the worker that handled this request has died" in said[-1]["error"]["message"]
        assert numbers(await client.call("count", to=3, delay_ms=0)) == [1, 2, 3]  # the session survives


@pytest.mark.full
async def test_a_stream_survives_the_death_of_a_worker_that_only_delivers_it(two: Cluster) -> None:
    async with meeting(two) as (client, first, second):
        reader = Reader(client, client.calling("count", to=60, delay_ms=20))
        await reader.read(two.at(first), 5)
        with suppress(httpx2.HTTPError):
            await reader.read(two.at(second), 15, lambda: two.kill(second))
        said = await reader.read(two.at(first))
        assert (numbers(said), text(said[-1])) == (list(range(1, 61)), "counted to 60")


@pytest.mark.full
async def test_an_undelivered_response_survives_the_death_of_its_worker(two: Cluster) -> None:
    async with meeting(two) as (client, first, second):
        reader = Reader(client, client.calling("count", to=10, delay_ms=20))
        await reader.read(two.at(first), 1)
        (events,) = two.redis.client.keys("*:e:*")
        await until(lambda: b"counted to 10" in two.redis.client.xrevrange(events, count=1)[0][1][b"d"])
        two.kill(first)
        said = await reader.read(two.at(second))
        assert (numbers(said), text(said[-1])) == (list(range(1, 11)), "counted to 10")


@pytest.mark.full
async def test_a_call_that_awaits_input_gets_an_error_when_its_worker_dies(mortal: Cluster) -> None:
    async with meeting(mortal) as (client, first, second):
        reader = Reader(client, client.calling("ask", question="Why?"))
        with suppress(httpx2.HTTPError):
            await reader.read(mortal.at(first), 1, lambda: mortal.kill(first))
        (question,) = reader.said
        assert question["method"] == "elicitation/create"
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"answer": "x"}}}
        assert (await client.post(answer, mortal.at(second))).status_code == 202
        _, error = await reader.read(mortal.at(second))
        assert "has died" in error["error"]["message"]


@pytest.mark.full
async def test_a_request_fails_if_its_worker_dies_before_sending_anything(two: Cluster) -> None:
    async with meeting(two) as (client, first, second):
        two.signal(first, signal.SIGSTOP)  # the worker has the request and has sent nothing
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_kill_soon, two, first)
            await refused(client.post(client.calling("count", to=1, delay_ms=0), two.at(first)), httpx2.HTTPError)
        assert await client.ping(two.at(second)) == 200


async def _kill_soon(cluster: Cluster, port: int) -> None:
    await anyio.sleep(0.2)
    cluster.kill(port)


@pytest.mark.full
async def test_notifications_sent_while_a_session_has_no_worker_arrive_once(mortal: Cluster) -> None:
    first, second = ports(mortal)
    async with patient(mortal, mortal.at(first)) as client, patient(mortal, mortal.at(second)) as other:
        await client.subscribe(NOTE, mortal.at(first))
        last: list[str] = []
        told, listening = 0, client.listen(last, mortal.at(first))
        for _ in range(3):
            await other.post(other.calling("announce", uri=NOTE))
            told += (await anext(listening))["params"] == {"uri": NOTE}
        await listening.aclose()
        mortal.kill(first)
        for _ in range(4):
            await other.post(other.calling("announce", uri=NOTE))
        with anyio.move_on_after(PATIENCE):
            async for _ in client.listen(last, mortal.at(second)):
                told += 1
                if told == 7:
                    break
        with anyio.move_on_after(0.3):
            async for _ in client.listen(last, mortal.at(second)):
                told += 1
        assert told == 7


@pytest.mark.full
async def test_a_worker_wrongly_declared_dead_drops_its_streams_and_rejoins(mortal: Cluster) -> None:
    async with meeting(mortal) as (client, first, second):
        reader = Reader(client, client.calling("count", to=1000, delay_ms=20))
        await reader.read(mortal.at(first), 5)
        mortal.signal(first, signal.SIGSTOP)
        said = [*await reader.read(mortal.at(second))]
        mortal.signal(first, signal.SIGCONT)
        assert "has died" in said[-1]["error"]["message"]
        await anyio.sleep(LEASE)
        assert await reader.read(mortal.at(second)) == said  # the worker has written nothing since
        for port in (first, second):
            assert (await client.insist({"id": client.id(), "method": "ping"}, mortal.at(port))).status_code == 200


# --- kill -9 at seeded moments, under load --------------------------------------------------------------------


class Checker:
    """Checks that clients receive each event once and in order, and a result or a clear error for each request."""

    def __init__(self) -> None:
        self.done = self.died = self.lost = 0
        self.is_over = False

    def count(self, to: int, messages: list[Any]) -> None:
        found = numbers(messages)
        assert found == list(range(1, len(found) + 1)), found
        answer = messages[-1]
        if "result" in answer:
            assert len(found) == to
            assert text(answer) == f"counted to {to}"
            self.done += 1
        else:
            assert "has died" in answer["error"]["message"], answer
            self.died += 1


async def _counts(client: Patient, check: Checker, seed: int) -> None:
    choice = random.Random(seed)
    while not check.is_over:
        to, delay = choice.choice([(1, 0), (5, 1), (20, 10), (40, 20)])
        request = client.calling("count", to=to, delay_ms=delay)
        try:
            check.count(to, [message async for message in client.messages(request)])
        except Lost:
            check.lost += 1


async def _asks(client: Patient, check: Checker, seed: int) -> None:
    choice = random.Random(seed)
    message: Any = None
    while not check.is_over:
        try:
            async for message in client.messages(client.calling("ask", question="Why?")):
                if message.get("method") == "elicitation/create":
                    await anyio.sleep(choice.random() * 0.2)
                    await client.insist({"id": message["id"], "result": {"action": "decline"}})
            assert ("result" in message and text(message) == "no answer") or "has died" in message["error"]["message"]
            check.done += 1
        except Lost:
            check.lost += 1


async def _listens(client: Patient, told: list[str]) -> None:
    await client.subscribe(NOTE)
    async for message in client.listen([]):
        told.append(message["params"]["uri"])


async def _announces(speaker: Patient, said: list[str]) -> str:
    """Announce new URIs until a worker confirms one, and return that URI; append each attempt to `said`."""
    while True:
        said.append(f"{NOTE}/{len(said)}")  # a path below the subscribed URI
        with suppress(Lost):
            (answer,) = await speaker.call("announce", uri=said[-1])
            if "result" in answer:
                return said[-1]
        await anyio.sleep(0.05)


async def _under_load(cluster: Cluster, kills: int, clients: int, seed: int) -> None:
    """Kill and restart a worker at random moments, while clients count, ask and listen.

    The kills continue until they hit a running request: clients are slow on a busy machine. Clients that reconnect
    end by themselves: a TLS handshake that is cancelled leaves its socket to the garbage collector.
    """
    check, choice = Checker(), random.Random(seed)
    heard, tried, announced = list[list[str]](), list[str](), set[str]()
    async with connections() as http, anyio.create_task_group() as tasks, anyio.create_task_group() as listeners:
        for number in range(clients):
            client = Patient(http, cluster.url)
            await client.begin()
            if number % 4 == 0:
                tasks.start_soon(_asks, client, check, seed + number)
            elif number % 4 == 1:
                heard.append([])
                listeners.start_soon(_listens, client, heard[-1])
            else:
                tasks.start_soon(_counts, client, check, seed + number)
        speaker = Patient(http, cluster.url)
        await speaker.begin()
        killed = 0
        while killed < kills or not check.died:
            killed += 1
            await anyio.sleep(0.2 + choice.random() * 0.6)
            port = choice.choice(ports(cluster))
            cluster.kill(port)
            await anyio.to_thread.run_sync(cluster.start, port)
            announced.add(await _announces(speaker, tried))
        with anyio.move_on_after(PATIENCE):
            while any(announced.difference(told) for told in heard) or check.done <= 2 * kills:
                await anyio.sleep(0.05)
        await anyio.sleep(0.3)
        listeners.cancel_scope.cancel()
        check.is_over = True
    for told in heard:
        assert len(told) == len(set(told))
        assert announced <= set(told) <= set(tried)
        assert told == sorted(told, key=tried.index)
    assert check.done > 2 * kills


@pytest.mark.full
@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.slow)])
async def test_clients_under_load_survive_worker_kills_at_random_moments(mortal: Cluster, kills: int) -> None:
    await _under_load(mortal, kills, 12, 16)


# --- SIGTERM --------------------------------------------------------------------------------------------------


async def _newcomers(url: str) -> None:
    """Send requests on new connections, one after the other."""
    while True:
        async with connections() as http:
            await http.get(url)


@pytest.mark.full
async def test_a_stopping_worker_finishes_short_requests_and_fails_long_ones(two: Cluster) -> None:
    async with meeting(two) as (client, first, second):
        standing: list[str] = []

        async def stand() -> None:
            async with client.stream(two.at(first)) as response:
                standing.extend([line async for line in response.aiter_lines()])

        said: dict[int, list[Any]] = {50: [], 5000: []}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stand)

            async def count(to: int) -> None:
                async with client.stream(two.at(first), client.calling("count", to=to, delay_ms=20)) as response:
                    async for message in client.events(response, []):
                        said[to].append(message)

            for to in said:
                tasks.start_soon(count, to)
            while not all(said.values()):
                await anyio.sleep(0.05)
            two.signal(first, signal.SIGTERM)
            await refused(_newcomers(two.at(first)), httpx2.ConnectError)
            assert await client.ping(two.at(second)) == 200
        assert "retry: 500" in standing
        assert text(said[50][-1]) == "counted to 50"
        assert "the server is stopping" in said[5000][-1]["error"]["message"]
        for messages in said.values():
            assert numbers(messages) == list(range(1, len(messages)))
        await until(lambda: not alive(two.workers[first]))


# --- Redis ----------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_requests_get_503_during_a_redis_outage_and_streams_continue(two: Cluster) -> None:
    async with meeting(two) as (client, first, second):
        last, said = list[str](), list[Any]()
        async with client.stream(two.at(first), client.calling("count", to=150, delay_ms=20)) as response:
            events = client.events(response, last)
            said += [await anext(events) for _ in range(5)]
            two.redis.stop()
            await anyio.sleep(0.5)
            for port in (first, second):
                for response in (await client.post(request(7, "ping"), two.at(port)), await client.hello(two.at(port))):
                    assert response.status_code == 503, response.text
                    assert int(response.headers["retry-after"]) > 0
            two.redis.start()
            for port in (first, second):
                while await client.ping(two.at(port)) != 200:
                    await anyio.sleep(0.02)
            said += [message async for message in events]
        if "result" not in said[-1]:  # the connection may have ended in the meantime
            async with client.stream(two.at(second), last=last) as response:
                said += [message async for message in client.events(response, last)]
        assert (numbers(said), text(said[-1])) == (list(range(1, 151)), "counted to 150")


@pytest.mark.full
async def test_requests_get_503_while_redis_hangs(impatient: Cluster) -> None:
    async with meeting(impatient) as (client, first, second):
        with impatient.redis.paused():
            for port in (first, second):
                answers: list[int] = []

                async def ping(port: int, answers: list[int] = answers) -> None:
                    answers.append(await client.ping(impatient.at(port)))

                async with anyio.create_task_group() as tasks:
                    for _ in range(20):
                        tasks.start_soon(ping, port)
                assert answers == [503] * 20
        for port in (first, second):
            while await client.ping(impatient.at(port)) != 200:
                await anyio.sleep(0.02)


async def test_new_sessions_get_503_while_redis_is_full_and_old_ones_survive(two: Cluster) -> None:
    async with patient(two) as client:
        two.redis.client.config_set("maxmemory", "1")
        response = await client.hello(two.url)
        assert response.status_code == 503, response.text
        assert int(response.headers["retry-after"]) > 0
        for _ in range(4):  # requests that need no more memory still work
            assert await client.ping() == 200
        with suppress(Lost):
            (answer,) = [one for one in await client.call("count", to=3, delay_ms=30) if "method" not in one]
            assert "error" in answer
        two.redis.client.config_set("maxmemory", "0")
        assert numbers(await client.call("count", to=3, delay_ms=30)) == [1, 2, 3]


@pytest.mark.full
async def test_clients_under_load_survive_redis_restarts(tmp_path: Path) -> None:
    check = Checker()
    with cluster(tmp_path) as two:
        async with anyio.create_task_group() as tasks:

            async def load(seed: int) -> None:
                async with patient(two) as client:
                    choice = random.Random(seed)
                    for _ in range(8):
                        to = choice.randint(1, 60)
                        request = client.calling("count", to=to, delay_ms=10)
                        while True:
                            try:
                                check.count(to, [message async for message in client.messages(request)])
                                break
                            except Lost:
                                check.lost += 1
                                request["id"] = client.id()
                                await anyio.sleep(0.1)

            for seed in range(8):
                tasks.start_soon(load, seed)
            for _ in range(3):
                await anyio.sleep(0.6)
                two.redis.stop()
                await anyio.sleep(0.3)
                await anyio.to_thread.run_sync(two.redis.start)
    assert check.done == 64, vars(check)


@pytest.mark.full
async def test_workers_register_again_after_redis_loses_its_data(mortal: Cluster) -> None:
    async with patient(mortal) as client:
        mortal.redis.client.flushall()
        for port in ports(mortal):
            while await client.ping(mortal.at(port)) != 404:
                await anyio.sleep(0.05)
    await until(lambda: mortal.redis.client.zcard("mcp-bindgen:workers") == 2)
    async with patient(mortal) as client:
        for port in ports(mortal):
            assert await client.ping(mortal.at(port)) == 200


# --- load -----------------------------------------------------------------------------------------------------


async def _crowd(cluster: Cluster, clients: int, rounds: int) -> None:
    check = Checker()
    async with connections() as http, anyio.create_task_group() as tasks:

        async def one(seed: int) -> None:
            client = Patient(http, cluster.url)
            await client.begin()
            choice = random.Random(seed)
            for _ in range(rounds):
                to = choice.randint(1, 30)
                check.count(to, await client.call("count", to=to, delay_ms=choice.choice([0, 5, 30])))
            assert (await client.http.delete(cluster.url, headers=client.headers)).status_code == 204

        for seed in range(clients):
            tasks.start_soon(one, seed)
    assert (check.done, check.died) == (clients * rounds, 0)
    assert [key for key in cluster.redis.client.keys("*") if b":s:" in key or b":e:" in key or b":o:" in key] == []


@pytest.mark.full
async def test_forty_concurrent_clients_are_served_and_leave_no_keys(two: Cluster) -> None:
    await _crowd(two, 40, 2)


@pytest.mark.slow
async def test_two_hundred_concurrent_clients_are_served_and_leave_no_keys(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with cluster(tmp_path_factory.mktemp("two")) as two:
        await _crowd(two, 200, 30)
