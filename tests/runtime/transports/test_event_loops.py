"""Stdio on event loops without `add_reader` and `add_writer`, such as the Proactor loop of Windows."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime import ConnectionClosed
from mcp_bindgen.runtime.transports import stdio
from mcp_bindgen.runtime.transports.stdio import Pipes
from mcp_bindgen.v2025_11_25 import Client
from tests.support.checked_connections import INITIALIZED, failure_of, initialize, request
from tests.support.commands import ROOT, execute


def _refuse(*arguments: object) -> Any:
    raise NotImplementedError


class PlainLoop(asyncio.SelectorEventLoop):
    """An event loop that cannot watch file descriptors."""

    add_reader = remove_reader = add_writer = remove_writer = _refuse  # type: ignore[assignment]


def on_plain_loop(work: Any) -> None:
    anyio.run(work, backend_options={"loop_factory": PlainLoop})


def test_messages_larger_than_a_pipe_pass_both_ways() -> None:
    async def talk() -> None:
        ours, yours = os.pipe(), os.pipe()
        left, right = Pipes(ours[0], yours[1]), Pipes(yours[0], ours[1])
        large = b"x" * 1_000_000
        for sender, receiver in ((left, right), (right, left)):
            found: list[Any] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sender.send, [large, b"second"])
                while len(found) < 2:
                    found += await receiver.receive()
            assert found == [large, b"second"]
        await right.close()
        with anyio.fail_after(10):
            assert await left.receive() == ()
        await failure_of(left.send([b"x"]), ConnectionClosed)
        await left.close()

    on_plain_loop(talk)


def test_cancelled_reads_and_writes_lose_no_message_and_split_none() -> None:
    async def talk() -> None:
        ours, yours = os.pipe(), os.pipe()
        left, right = Pipes(ours[0], yours[1]), Pipes(yours[0], ours[1])
        with anyio.move_on_after(0.05):
            await right.receive()
        with anyio.move_on_after(0.05) as scope:
            await left.send([b"y" * 1_000_000])
        assert scope.cancelled_caught
        found: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.send, [b"after"])
            while len(found) < 2:
                found += await right.receive()
        assert found == [b"y" * 1_000_000, b"after"]
        with anyio.move_on_after(0.05):
            await left.receive()  # a thread is reading when the descriptor is closed
        await left.close()
        assert await left.receive() == ()
        await right.close()

    on_plain_loop(talk)


def test_a_client_starts_a_server() -> None:
    async def talk() -> None:
        async with Client.connect([sys.executable, str(ROOT / "benchmarks" / "echo_server.py")]) as client:
            assert (await client.list_tools()).tools

    on_plain_loop(talk)


PROGRAM = """
import anyio
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types
from tests.runtime.transports.test_event_loops import PlainLoop

class Echo(Server):
    info = types.Implementation(name="echo", version="1")
    async def list_tools(self, params, ctx): return types.ListToolsResult(tools=[])

real = anyio.run
anyio.run = lambda work: real(work, backend_options={"loop_factory": PlainLoop})
run(Echo())
"""


def test_a_server_answers_and_ends_with_its_input() -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in (initialize("2025-11-25"), INITIALIZED, request(2, "tools/list")))
    done = execute(sys.executable, "-c", PROGRAM, stdin=lines, PYTHONPATH=str(ROOT))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 2], done.stderr
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_a_server_whose_thread_waits_for_input() -> None:
    command = [sys.executable, "-c", PROGRAM]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(initialize('2025-11-25'))}\n".encode())
        server.stdin.flush()
        assert select.select([server.stdout.fileno()], [], [], 60)[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 130


STUBBORN = """
import sys, time
sys.stdin.read()
time.sleep(3600)
"""


def test_without_groups_of_processes_a_child_that_ignores_the_end_of_its_input_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows, where `os.killpg` does not exist."""
    monkeypatch.setattr(stdio, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.delattr(os, "killpg")
    pids: list[int] = []
    start = anyio.open_process

    async def open_process(*arguments: Any, **options: Any) -> Any:
        process = await start(*arguments, **options)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(anyio, "open_process", open_process)

    async def talk() -> None:
        async with stdio.stdio(sys.executable, "-c", STUBBORN, grace=0.1):
            pass

    on_plain_loop(talk)
    (pid,) = pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
