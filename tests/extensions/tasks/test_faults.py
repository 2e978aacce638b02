"""Kill worker processes at each step of a task: no task is lost, and no task runs more often than allowed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from anyio import to_thread

from mcp_bindgen.extensions.tasks.record import TaskRecord, new_id
from mcp_bindgen.extensions.tasks.service import RunningTask, Tasks
from mcp_bindgen.runtime import ProtocolError, connect
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.harness.effort import HANG_SECONDS
from tests.harness.forks import PYTHON
from tests.harness.processes import free_port, process
from tests.harness.redis_server import redis_server
from tests.harness.scripted_http_server import eventually
from tests.harness.task_worker import LEASE, QUESTION, handle, opened

STEPS = [(at, when) for at in range(1, 7) for when in ("before", "after")]
"""A worker is killed before and after each of these writes: create, lease, begin, ask, take the answer, end."""


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        if request.param == "sqlite":
            yield f"{folder}/"
            return
        with redis_server(folder) as server:
            yield f"@{server.url}"


@pytest.mark.parametrize("reruns", [0, pytest.param(2, marks=pytest.mark.full)])
def test_a_task_ends_although_its_worker_is_killed_at_any_step(place: str, reruns: int, tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    for at, when in [*STEPS, (0, "inside")]:
        name = f"{at}{when}{reruns}"
        store = f"{new_id()}:{place}" if place.startswith("@") else f"{place}{name}.db"
        files = {"ran": str(tmp_path / f"{name}.ran"), "told": str(tmp_path / f"{name}.told")}
        cases.append({"store": store, "at": at, "when": when, "reruns": reruns, **files})
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    worker = [PYTHON, "-m", "tests.harness.task_worker"]
    done = subprocess.run(worker, input=lines, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr
    ends = {int(number): int(status) for number, status in map(str.split, done.stdout.splitlines())}
    assert set(ends.values()) == {-signal.SIGKILL}, done.stderr

    async def recover_all() -> None:
        with anyio.fail_after(HANG_SECONDS):
            async with anyio.create_task_group() as group:
                for case in cases:
                    group.start_soon(recover, case)

    anyio.run(recover_all)


class Yes(tasks.Client):
    def on_elicit(self, params: Any, ctx: Any) -> Any:
        return mcp.ElicitResult(action="accept", content={"answer": True})


@pytest.mark.full
async def test_a_waiting_client_gets_a_result_or_an_error_after_server_kills(tmp_path: Path) -> None:
    port = free_port()
    command, ends = [sys.executable, "-m", "tests.harness.task_server", port, tmp_path], dict[str, Any]()

    async def wait(client: Any, name: str) -> None:
        try:
            ends[name] = (await client.call_tool(name)).content[0].text
        except ProtocolError as error:
            ends[name] = error.code

    with ExitStack() as running:
        server = running.enter_context(process(command, port, tmp_path / "log"))
        async with connect(f"http://127.0.0.1:{port}/mcp", Yes) as client, anyio.create_task_group() as group:
            for name in ("careful", "once"):
                group.start_soon(wait, client, name)
            await eventually(lambda: (tmp_path / "careful").exists() and (tmp_path / "once").exists())
            for pause in (0.4, 0.1):
                await anyio.sleep(pause)
                server.kill()
                server.wait()
                await anyio.sleep(0.1)
                server = await to_thread.run_sync(running.enter_context, process(command, port, tmp_path / "log"))
    assert ends == {"careful": "done: True", "once": -32603}
    assert (tmp_path / "once").read_text() == "ran\n"
    assert 1 <= len((tmp_path / "careful").read_text().split()) <= 3


async def recover(case: dict[str, Any]) -> None:
    """Take over the tasks of a killed worker, and answer their questions as the client."""
    store = opened(case["store"])
    service = Tasks(store, lease=LEASE)

    async def run(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        await handle(record, Path(case["ran"]))
        return {"answer": await running.ask(QUESTION)}

    service.handlers["x"] = run
    told = Path(case["told"])
    async with aclosing(store), service.serving():
        ids = [record.id for record in await service.page("")]
        assert len(ids) == (0 if (case["at"], case["when"]) == (1, "before") else 1)
        if told.exists():
            assert ids == [told.read_text()]
        for id in ids:
            async for record in service.versions(id):
                if record.open:
                    await service.update(id, "", {"q": "yes"})
            record = await service.read(id, "")
            ran = Path(case["ran"]).read_text().split().count(id) if Path(case["ran"]).exists() else 0
            assert max(ran, record.runs) <= 1 + case["reruns"]
            if case["reruns"] or not record.runs:
                assert record.status == "completed", case
            if record.status == "completed":
                assert record.result == {"answer": {"q": "yes"}}
                assert ran >= 1
            else:
                assert (record.error or {}).get("code") == -32603
