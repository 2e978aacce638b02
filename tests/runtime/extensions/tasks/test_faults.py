"""Processes that are killed at each step of a task's life: no task is lost, none runs twice that may not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime.extensions.tasks.record import TaskRecord, new_id
from mcp_bindgen.runtime.extensions.tasks.service import RunningTask, Tasks
from tests.support.redis_server import redis_server
from tests.support.task_worker import LEASE, QUESTION, handle, opened

STEPS = [(at, when) for at in range(1, 7) for when in ("before", "after")]
"""Create, lease, begin, ask, take the answer, end: a worker is killed before each of these writes, and after it."""


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        if request.param == "sqlite":
            yield f"{folder}/"
            return
        with redis_server(folder) as server:
            yield f"@{server.url}"


@pytest.mark.parametrize("reruns", [0, 2])
def test_a_worker_may_be_killed_at_every_step(place: str, reruns: int, tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    for at, when in [*STEPS, (0, "inside")]:
        name = f"{at}{when}{reruns}"
        store = f"{new_id()}:{place}" if place.startswith("@") else f"{place}{name}.db"
        files = {"ran": str(tmp_path / f"{name}.ran"), "told": str(tmp_path / f"{name}.told")}
        cases.append({"store": store, "at": at, "when": when, "reruns": reruns, **files})
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    worker = [sys.executable, "-m", "tests.support.task_worker"]
    done = subprocess.run(worker, input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    ends = {int(number): int(status) for number, status in map(str.split, done.stdout.splitlines())}
    assert set(ends.values()) == {-signal.SIGKILL}, done.stderr

    async def recover_all() -> None:
        async with anyio.create_task_group() as group:
            for case in cases:
                group.start_soon(recover, case)

    anyio.run(recover_all)


async def recover(case: dict[str, Any]) -> None:
    """Serve what a killed worker left, and be the client that comes back."""
    store = opened(case["store"])
    tasks = Tasks(store, lease=LEASE)

    async def run(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        await handle(record, Path(case["ran"]))
        return {"answer": await running.ask(QUESTION)}

    tasks.handlers["x"] = run
    told = Path(case["told"])
    async with tasks.serving():
        ids = [record.id for record in await tasks.page("")]
        assert len(ids) == (0 if (case["at"], case["when"]) == (1, "before") else 1)
        if told.exists():
            assert ids == [told.read_text()]
        for id in ids:
            with anyio.fail_after(20):
                async for record in tasks.versions(id):
                    if record.open:
                        await tasks.update(id, "", {"q": "yes"})
            record = await tasks.read(id, "")
            ran = Counter(Path(case["ran"]).read_text().split()) if Path(case["ran"]).exists() else Counter[str]()
            assert ran[id] <= 1 + case["reruns"]
            assert record.runs <= 1 + case["reruns"]
            if case["reruns"] or not record.runs:
                assert record.status == "completed", case
            if record.status == "completed":
                assert record.result == {"answer": {"q": "yes"}}
                assert ran[id] >= 1
            else:
                assert record.error is not None
                assert record.error["code"] == -32603
    await store.aclose()
