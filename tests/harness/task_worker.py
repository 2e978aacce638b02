"""Workers that serve a task and are killed at a given step: `python -m tests.harness.task_worker`.

Reads one JSON object per line and forks a process for each; prints a line when that process has ended. Forks are fast
because all modules are already imported.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.extensions.tasks.record import TaskRecord, new_id, now
from mcp_bindgen.extensions.tasks.redis_store import RedisTaskStore
from mcp_bindgen.extensions.tasks.service import RunningTask, Tasks
from mcp_bindgen.extensions.tasks.sqlite_store import SqliteTaskStore
from mcp_bindgen.extensions.tasks.store import TaskStore
from tests.harness.redis_server import ANSWER_SECONDS

WRITES = ("create", "lease", "swap", "release")
LEASE = 0.5
QUESTION = {"q": {"method": "elicitation/create", "params": {"message": "go on?"}}}


class Mortal:
    """A store that kills its process before or after its nth write."""

    def __init__(self, store: TaskStore, at: int, when: str) -> None:
        self._store, self._at, self._when, self._count = store, at, when, 0

    def __getattr__(self, name: str) -> Any:
        method: Any = getattr(self._store, name)
        if name not in WRITES:
            return method

        async def write(*arguments: Any, **named: Any) -> Any:
            self._count += 1
            is_last = self._count == self._at
            if is_last and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            found = await method(*arguments, **named)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return write


def opened(where: str) -> TaskStore:
    """Return a store: a Redis given as `PREFIX@URL`, or a file."""
    prefix, _, url = where.partition("@")
    if url:
        return RedisTaskStore(url, prefix=prefix, timeout=ANSWER_SECONDS)
    return SqliteTaskStore(where, wait=ANSWER_SECONDS)


async def handle(record: TaskRecord, log: Path, dies: bool = False) -> Mapping[str, Any]:
    """Record that the tool ran, as its first step."""
    with log.open("a") as file:
        file.write(f"{record.id}\n")
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return {}


async def work(case: dict[str, Any]) -> None:
    """Serve one task and act as its client until the task is done or the process is killed."""
    store: Any = Mortal(opened(case["store"]), case["at"], case["when"])
    tasks = Tasks(store, lease=LEASE)

    async def run(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        await handle(record, Path(case["ran"]), case["when"] == "inside")
        return {"answer": await running.ask(QUESTION)}

    tasks.handlers["x"] = run
    async with tasks.serving():
        time = now()
        record = TaskRecord(
            id=new_id(), revision="x", method="m", created=time, updated=time, ttl=60_000, reruns=case["reruns"]
        )
        await tasks.create(record)
        Path(case["told"]).write_text(record.id)  # the client has the task id
        async for found in tasks.versions(record.id):
            if found.open:
                await tasks.update(record.id, "", {"q": "yes"})


def main() -> None:
    """Process the cases from standard input, six at a time."""
    children: dict[int, int] = {}
    for number, line in enumerate(sys.stdin):
        if len(children) >= 6:
            _ended(children)
        child = os.fork()
        if not child:
            anyio.run(work, json.loads(line))
            os._exit(0)
        children[child] = number
    while children:
        _ended(children)


def _ended(children: dict[int, int]) -> None:
    child, status = os.wait()
    print(children.pop(child), os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
