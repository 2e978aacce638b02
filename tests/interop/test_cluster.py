"""Official clients use two workers that share Redis, behind nginx without session affinity."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from tests.harness.checked_connections import until
from tests.harness.cluster import PUBLIC_NAME, Cluster, cluster
from tests.interop.processes import HERE, needed, node

ROUNDS = 6

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("two"), lease=5.0) as made:
        yield made


def test_the_typescript_sdk_works_with_two_workers(two: Cluster) -> None:
    needed("@modelcontextprotocol/sdk")
    command = [node(), "--require", "./public_name.cjs", "cluster_client.mjs", two.url, str(ROUNDS)]
    here = {**os.environ, "PUBLIC_NAME": PUBLIC_NAME, "NODE_EXTRA_CA_CERTS": os.environ["SSL_CERT_FILE"]}
    done = subprocess.run(command, cwd=HERE, env=here, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "counts": [[[1, 2, 3, 4, 5], "counted to 5"]] * ROUNDS,
        "answers": [f"question {number}" for number in range(ROUNDS)],
        "updates": ROUNDS,
    }


async def test_the_python_sdk_works_with_two_workers(two: Cluster) -> None:
    updates: list[Any] = []

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": params.message})

    async def hear(message: Any) -> None:
        if isinstance(getattr(message, "root", message), types.ResourceUpdatedNotification):
            updates.append(message)

    async with (
        streamable_http_client(two.url) as (read, write, *_),
        ClientSession(read, write, elicitation_callback=elicit, message_handler=hear) as session,
    ):
        await session.initialize()
        await session.subscribe_resource("note://1")
        reached: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            reached.append(progress)

        for number in range(ROUNDS):
            reached.clear()
            counted: Any = await session.call_tool("count", {"to": 5, "delay_ms": 20}, None, note)
            assert counted.content[0].text == "counted to 5"
            assert reached == [1, 2, 3, 4, 5]
            asked: Any = await session.call_tool("ask", {"question": f"question {number}"})
            assert asked.content[0].text == f"question {number}"
            await session.call_tool("announce", {"uri": "note://1"})
        await until(lambda: len(updates) >= ROUNDS)
        await anyio.sleep(0.2)  # a duplicate update would arrive within this time
        assert len(updates) == ROUNDS
