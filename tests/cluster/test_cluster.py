"""Workers that share Redis, behind a real nginx without affinity: any worker takes any request of any session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from tests.harness.checked_connections import lone, until
from tests.harness.cluster import NEW, Cluster, Patient, Reader, answer, cluster, connections, numbers, patient, text
from tests.harness.processes import PATIENCE

NOTE = "note://1"
UPDATED = "notifications/resources/updated"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("two")) as made:
        yield made


def ports(cluster: Cluster) -> tuple[str, str]:
    """Return the addresses of the first two workers."""
    first, second = [cluster.at(port) for port in list(cluster.workers)[:2]]
    return first, second


# --- no sticky sessions ---------------------------------------------------------------------------------------


async def test_any_worker_handles_any_request_of_a_session(two: Cluster) -> None:
    async with patient(two) as client:
        for number in range(10):
            messages = await client.call("count", to=3, delay_ms=0)
            assert (numbers(messages), text(messages[-1])) == ([1, 2, 3], "counted to 3")
            for url in ports(two):
                response = await client.post({"id": f"{number} {url}", "method": "tools/list"}, url)
                assert len(answer(response)["result"]["tools"]) == 3


async def test_a_response_at_any_worker_reaches_the_handler_that_sent_the_request(two: Cluster) -> None:
    async with patient(two) as client:
        message: Any = None
        for asking in ports(two):
            for answering in ports(two):
                async for message in client.messages(client.calling("ask", question="Why?"), asking):
                    if message.get("method") == "elicitation/create":
                        result = {"action": "accept", "content": {"answer": answering}}
                        response = await client.post({"id": message["id"], "result": result}, answering)
                        assert response.status_code == 202
                assert text(message) == answering


async def test_a_cancellation_at_another_worker_cancels_the_handler(two: Cluster) -> None:
    async with patient(two) as client:
        for calling, cancelling in (ports(two), ports(two)[::-1]):
            asked, said = client.calling("count", to=1000, delay_ms=20), list[Any]()
            async with client.stream(calling, asked) as response:
                async for line in response.aiter_lines():
                    said.append(line)
                    if len(said) == 10:
                        cancelled = {"method": "notifications/cancelled", "params": {"requestId": asked["id"]}}
                        assert (await client.post(cancelled, cancelling)).status_code == 202
            assert len(said) < 500
            assert "result" not in "".join(said)


async def test_a_stream_is_resumed_by_another_worker_with_every_event_once_and_in_order(two: Cluster) -> None:
    async with patient(two) as client:
        for url in ports(two):
            reader = Reader(client, client.calling("count", to=40, delay_ms=10))
            for turn in range(5):  # disconnect again and again, and resume at alternating workers
                await reader.read(ports(two)[turn % 2 - 1] if turn else url, 7 * (turn + 1))
            said = await reader.read(ports(two)[0])
            assert (numbers(said), text(said[-1])) == (list(range(1, 41)), "counted to 40")


async def test_the_newest_connection_takes_over_a_stream_from_any_worker(two: Cluster) -> None:
    async with patient(two) as client:
        first, second = ports(two)
        asked, last = client.calling("count", to=200, delay_ms=20), list[str]()
        async with AsyncExitStack() as stack:
            events = client.events(await stack.enter_async_context(client.stream(first, asked)), last)
            said = [await anext(events) for _ in range(3)]
            for url in (second, second):  # the old and the new connection may be at the same worker
                newest, last, old = await stack.enter_async_context(client.stream(url, last=last)), [], events
                assert newest.status_code == 200
                assert len([message async for message in old]) < 150  # the worker closed the old connection
                events = Patient(client.http, url).events(newest, last)  # may repeat events of the old connection
                said += [await anext(events) for _ in range(3)]
            said += [message async for message in events]
        assert numbers(said) == list(range(1, 201))


async def test_the_newest_listen_stream_of_a_session_replaces_the_older_one_at_any_worker(two: Cluster) -> None:
    async with patient(two) as client, AsyncExitStack() as stack:
        first, second = ports(two)
        subscribed = {"id": client.id(), "method": "resources/subscribe", "params": {"uri": NOTE}}
        assert answer(await client.post(subscribed))["result"] == {}
        older: AsyncIterator[Any] | None = None
        for url in (first, second, second, first):
            newest = await stack.enter_async_context(client.stream(url))
            assert newest.status_code == 200
            events = client.events(newest, [])  # no event comes twice
            assert older is None or [message async for message in older] == []
            await client.post(client.calling("announce", uri=NOTE), url)
            assert (await anext(events))["method"] == UPDATED
            older = events


async def test_all_workers_know_the_resource_subscriptions_of_a_client(two: Cluster) -> None:
    async with patient(two) as client:
        first, second = ports(two)

        async def follow(method: str, uri: str, url: str) -> None:
            response = await client.post({"id": client.id(), "method": method, "params": {"uri": uri}}, url)
            assert answer(response)["result"] == {}, response.text

        uris = [f"note://{number}" for number in range(12)]
        async with anyio.create_task_group() as tasks:  # both workers get some subscriptions at the same moment
            for number, uri in enumerate(uris):
                tasks.start_soon(follow, "resources/subscribe", uri, (first, second)[number % 2])
        await follow("resources/unsubscribe", uris[3], first)
        for uri in uris:
            for url in (first, second):
                await client.post(client.calling("announce", uri=uri), url)
        assert sorted(await _standing(client, second, 22)) == sorted([uri for uri in uris if uri != uris[3]] * 2)


async def _standing(client: Patient, url: str, count: int) -> list[str]:
    """Return the resources of the next `count` events of the GET stream, and of any event that follows."""
    told: list[str] = []
    with anyio.move_on_after(PATIENCE):
        async for message in client.listen([], url):
            assert message["method"] == UPDATED
            told.append(message["params"]["uri"])
            if len(told) == count:
                break
    with anyio.move_on_after(0.2):
        async for message in client.listen([], url):
            told.append(message["params"]["uri"])
    return told


async def test_a_broadcast_reaches_each_subscribed_client_once_at_any_worker(two: Cluster) -> None:
    heard: dict[str, list[str]] = {}

    async def session(name: str, url: str, subscribes: bool) -> None:
        async with patient(two) as client:
            if subscribes:
                await client.subscribe(NOTE)
            heard[name] = []
            async for message in client.listen([], url):
                heard[name].append(message["params"]["uri"])

    async def stateless(name: str, url: str) -> None:
        message = lone(1, "subscriptions/listen", {}, notifications={"resourceSubscriptions": [NOTE]})
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": NEW}
        headers |= {"mcp-method": "subscriptions/listen"}
        async with (
            connections() as http,
            http.stream("POST", url, headers=headers, json=message) as response,
        ):
            heard[name] = []
            async for line in response.aiter_lines():
                if UPDATED in line:
                    heard[name].append(NOTE)

    async with anyio.create_task_group() as tasks:
        for turn, url in enumerate(ports(two) * 2):
            tasks.start_soon(session, f"session {turn}", url, True)
            tasks.start_soon(session, f"stranger {turn}", url, False)
            tasks.start_soon(stateless, f"stateless {turn}", url)
        async with patient(two) as client:
            await until(lambda: len(heard) == 12)
            await anyio.sleep(0.3)
            for url in ports(two) * 3:
                response = await client.post(client.calling("announce", uri=NOTE), url)
                assert text(answer(response)) == f"announced {NOTE}"
            with anyio.move_on_after(PATIENCE):
                while any(len(told) < 6 for name, told in heard.items() if "stranger" not in name):
                    await anyio.sleep(0.05)
            await anyio.sleep(0.3)
        tasks.cancel_scope.cancel()
    assert {name: len(told) for name, told in heard.items()} == {name: 0 if "stranger" in name else 6 for name in heard}


async def test_a_deleted_session_ends_at_all_workers(two: Cluster) -> None:
    async with patient(two) as client:
        first, second = ports(two)
        for url in (first, second):
            assert await client.ping(url) == 200
        async with client.stream(first) as standing:
            async with client.stream(first, client.calling("count", to=1000, delay_ms=20)) as response:
                said = client.events(response, [])
                await anext(said)
                assert (await client.http.delete(second, headers=client.headers)).status_code == 204
                messages = [message async for message in said]
                await standing.aread()
            assert "the session is over" in messages[-1]["error"]["message"]
        for url in (first, second):
            assert await client.ping(url) == 404
            assert (await client.http.get(url, headers=client.headers)).status_code == 404


@pytest.mark.full
async def test_a_retry_with_input_responses_may_go_to_another_worker(two: Cluster) -> None:
    accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": NEW}
    headers = {**accept, "mcp-method": "tools/call", "mcp-name": "ask"}
    async with connections() as http:
        for first, second in (ports(two), ports(two)[::-1]):
            given: dict[str, Any] = {"name": "ask", "arguments": {"question": "Why?"}}
            message = lone(1, "tools/call", {"elicitation": {"form": {}}}, **given)
            response = await http.post(first, headers=headers, json=message)
            assert "result" in answer(response), response.text
            asked = answer(response)["result"]
            given_back = {"action": "accept", "content": {"answer": "Because"}}
            more = {"inputResponses": dict.fromkeys(asked["inputRequests"], given_back)}
            if "requestState" in asked:
                more["requestState"] = asked["requestState"]
            message = lone(2, "tools/call", {"elicitation": {"form": {}}}, **given, **more)
            response = await http.post(second, headers=headers, json=message)
            assert "result" in answer(response), response.text
            assert text(answer(response)) == "Because"
