"""What goes wrong between processes: damaged lines, huge messages, peers that hang, die, or will not die."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcp_bindgen.runtime import ConnectionClosed, ProtocolError, RequestTimeout, Server, Transport, serve
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Oversized
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.stdio import Lines, stdio
from mcp_bindgen.v2025_11_25 import Client, Context
from mcp_bindgen.v2025_11_25 import Server as LatestServer
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.support.checked_connections import (
    INITIALIZED,
    Raw,
    Recording,
    answer,
    initialize,
    notification,
    pipe_pair,
    played,
    request,
    running,
    strictly,
)
from tests.support.processes import alive

LATEST = "2025-11-25"
ECHO = Path(__file__).parents[3] / "benchmarks" / "echo_server.py"
MIB = 1024 * 1024
LONG = 3600.0

SERVER = """
import os, subprocess, sys, time
import anyio
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp


class Faulty(Server):
    async def call_tool(self, params, ctx):
        return self.said(await getattr(self, params.name)(ctx, **(params.arguments or {})))

    def complete(self, params, ctx):
        time.sleep(float(params.argument.value))
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=["slept"]))

    def said(self, text):
        return mcp.CallToolResult(content=[mcp.TextContent(text=str(text))])

    async def echo(self, ctx, text):
        return text

    async def later(self, ctx, text):
        await anyio.sleep(0)
        return text

    async def pid(self, ctx):
        return os.getpid()

    async def sleep(self, ctx):
        print("sleeping", file=sys.stderr, flush=True)
        await anyio.sleep(3600)

    async def die(self, ctx):
        os._exit(3)

    async def loud(self, ctx):
        print("a stray print")
        os.write(1, b"a stray write\\n")
        subprocess.run(["echo", "a stray child"])
        return "quiet"

    async def read(self, ctx):
        try:
            return repr(input())
        except EOFError:
            return "nothing to read: " + repr(sys.stdin.read())

    async def spawn(self, ctx):
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid

    async def roots(self, ctx, text):
        found = await ctx.list_roots()
        return text + found.roots[0].uri


run(Faulty())
"""

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(sys.stdin.readline() and '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"serverInfo":{"name":"stubborn","version":"1"}}}', flush=True)
while True:
    time.sleep(3600)
"""

CLIENT = """
import sys
import anyio
from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client


async def main():
    async with Client.connect(stdio(sys.executable, sys.argv[1])) as client:
        print((await client.call_tool("pid")).content[0].text, flush=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, sys.argv[2])
            tasks.start_soon(anyio.sleep, 3600)


anyio.run(main)
"""


# --- tools ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server that does what it should not."""
    path = tmp_path_factory.mktemp("faults") / "faulty.py"
    path.write_text(SERVER, "utf-8")
    return path


class Child:
    """A server process, driven by hand through its streams."""

    def __init__(self, script: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.sink, self.source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.lines = Lines(1024 * MIB)
        self.ready: list[bytes | Oversized] = []

    def send(self, *messages: object) -> None:
        """Writes messages, one a line, at once; the child has to read them."""
        view = memoryview(b"".join(as_line(message) for message in messages))
        while view:
            view = view[os.write(self.sink, view) :]

    def receive(self, seconds: float = 10) -> Any:
        """The next message."""
        deadline = time.monotonic() + seconds
        while not self.ready:
            readable, _, _ = select.select([self.source], [], [], max(0, deadline - time.monotonic()))
            assert readable, "no answer in time"
            chunk = os.read(self.source, MIB)
            assert chunk, "the server is gone"
            self.ready += self.lines.feed(chunk)
        line = self.ready.pop(0)
        assert isinstance(line, bytes)
        return strictly(line)

    def ask(self, message: object) -> Any:
        """Writes one message and gives the next that comes."""
        self.send(message)
        return self.receive()

    def alive(self) -> None:
        """Fails when the connection is no longer of use."""
        assert self.ask(request("alive?", "ping")) == answer("alive?", {})

    def end(self) -> tuple[int, bytes, bytes]:
        """Closes the input of the server; gives its exit code and what else it wrote."""
        output, errors = self.process.communicate(timeout=10)
        return self.process.returncode, output, errors


def as_line(message: object) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


@contextmanager
def started(script: Path) -> Generator[Child]:
    """A server process whose handshake is done."""
    child = Child(script)
    try:
        assert child.ask(initialize(LATEST))["id"] == 0
        child.send(INITIALIZED)
        yield child
    finally:
        if child.process.returncode is None:
            child.process.kill()
            child.process.communicate(timeout=10)


def call(id_: object, name: str, **arguments: object) -> dict[str, Any]:
    return request(id_, "tools/call", {"name": name, "arguments": arguments})


def text_of(result: Any) -> str:
    (block,) = result.content
    return str(block.text)


def soon(condition: Callable[[], object], seconds: float = 45) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def memory(pid: int) -> int:
    """What a process holds in memory, in bytes."""
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True).stdout
    return int(shown) * 1024


class Echo(LatestServer):
    """Says back what it is told."""

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        text = (params.arguments or {}).get("text", "")
        if params.name == "sleep":
            await anyio.sleep(LONG)
        if params.name == "later":
            await anyio.sleep(0)
        if params.name == "twice":
            text += text
        return mcp.CallToolResult(content=[mcp.TextContent(text=text)])


@asynccontextmanager
async def through_pipes(server: Server, limit: int = MAX_MESSAGE) -> AsyncGenerator[Raw]:
    """A server behind pipes, for a client that is played by hand."""
    left, right = pipe_pair(limit)
    async with running(serve(Recording(right, LATEST), server)):
        raw = Raw(left)
        try:
            await raw.introduce(LATEST)
            yield raw
        finally:
            await left.close()


# --- lines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_lines_are_found_however_they_are_cut(size: int) -> None:
    text = b'{"a":1}\n\n \r\n{"b":"\xc3\xa9"}\r\n' + b"x" * 30 + b"\n" + b"y" * 31 + b"\n" + b"z" * 300 + b"\n{}\nhalf"
    lines = Lines(30)
    found = [line for start in range(0, len(text), size) for line in lines.feed(text[start : start + size])]
    assert [len(line) if isinstance(line, bytes) else None for line in found] == [7, 11, 30, None, None, 2]
    assert lines.feed(b"\n") == [b"half"]


def test_what_is_too_large_is_not_kept() -> None:
    lines = Lines(10)
    for _ in range(1000):
        assert lines.feed(b"x" * 1000) == []
    assert sum(len(part) for part in lines._parts) <= 10  # pyright: ignore[reportPrivateUsage]
    (found,) = lines.feed(b"\n")
    assert isinstance(found, Oversized)
    assert found.head == b"x" * 256
    for start in range(0, 2000, 3):
        lines.feed(bytes(str(start), "ascii"))
    (found,) = lines.feed(b"\n")
    assert isinstance(found, Oversized)
    assert found.head == b"036912151821"[: len(found.head)]
    assert len(found.head) > 10


def test_messages_may_be_cut_anywhere(faulty: Path) -> None:
    with started(faulty) as child:
        line = as_line(call(1, "echo", text="héllo \U0001f600"))
        for cut in (1, 10, len(line) - 30, len(line) - 1):
            child.send(line[:cut])
            time.sleep(0.02)
            child.send(line[cut:])
            assert child.receive()["result"]["content"][0]["text"] == "héllo \U0001f600"
        child.send(line + as_line(request(2, "ping")) + line[:20])
        assert [child.receive()["id"] for _ in range(2)] == [1, 2]
        child.send(line[20:] + b"\r\n\n  \n" + as_line(request(3, "ping")).replace(b"\n", b"\r\n"))
        assert [child.receive()["id"] for _ in range(2)] == [1, 3]


def test_half_a_line_is_no_message(faulty: Path) -> None:
    with started(faulty) as child:
        child.send(as_line(request(1, "ping"))[:-5])
        assert child.end() == (0, b"", b"")


# --- damage ---------------------------------------------------------------------------------------------------

DAMAGE = [
    (b"\xff\xfe\xfd", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xc3\x28"}}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
    (b"Hello?", -32700, None),
    (b"\x00", -32700, None),
    (b"[" * 10_000 + b"]" * 10_000, -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"x":' * 10_000 + b"1" + b"}" * 10_001, -32700, None),
    (b'{"jsonrpc":"2.0","id":"a","method":"tools/call"}', -32602, "a"),
    (b'{"jsonrpc":"2.0","id":"a","method":"tools/fly"}', -32601, "a"),
    (b'{"id":"a","method":"ping"}', -32600, "a"),
    (b"[]", -32600, None),
]


def test_damage_is_answered_and_survived(faulty: Path) -> None:
    with started(faulty) as child:
        for data, code, id_ in DAMAGE:
            answered = child.ask(data + b"\n")
            assert (answered["error"]["code"], answered.get("id")) == (code, id_)
            child.alive()
        child.send(answer(1, {}), answer("x", None), {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": ""}})
        child.send({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}})
        child.alive()
        code, _, errors = child.end()
        assert code == 0
        assert b"Traceback" not in errors


async def test_an_id_in_flight_is_refused_and_the_first_request_goes_on() -> None:
    go = anyio.Event()

    class Waiting(LatestServer):
        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            await go.wait()
            return mcp.CallToolResult(content=[])

    async with played(Waiting()) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(call(1, "x"), call(1, "x"), request(1, "ping"))
        assert [(await raw.receive())["error"]["code"] for _ in range(2)] == [-32600] * 2
        go.set()
        assert "result" in await raw.receive()
        assert await raw.ask(request(1, "ping")) == answer(1, {})


async def test_a_client_survives_a_server_that_talks_nonsense() -> None:
    left, right = pair()
    raw = Raw(right)

    async def script() -> None:
        await raw.welcome({"tools": {}})
        asked = await raw.receive()
        for data, *_ in DAMAGE:
            await raw.send(data)
        await raw.send(b"Server started!", answer(99, {}), answer(str(asked["id"]), {}), notification("nope"))
        await raw.send(request("x", "nope"), answer(asked["id"], {"content": []}))
        while (await raw.receive()).get("id") != "x":
            pass
        last = await raw.receive()
        await raw.send(answer(last["id"], {"content": [], "isError": "maybe"}))

    async with running(script()), Client.connect(Recording(left, LATEST)) as client:
        assert (await client.call_tool("x")).content == []
        with pytest.raises(ProtocolError, match="isError"):
            await client.call_tool("y")
    await raw.close()


# --- size -----------------------------------------------------------------------------------------------------


async def test_what_is_too_large_is_refused_and_the_connection_lives_on() -> None:
    limit = 1000
    async with through_pipes(Echo(), limit) as raw:
        fitting = call(1, "echo", text="")
        fitting["params"]["arguments"]["text"] = "x" * (limit - len(json.dumps(fitting)))
        assert len(json.dumps(fitting)) == limit
        await raw.send(fitting)
        for size in (limit + 1, 10 * limit, 1000 * limit):
            with anyio.move_on_after(5):
                await raw.send(b"y" * size)
        await raw.send(request(2, "ping"))
        assert "result" in await raw.receive()
        for _ in range(3):
            refused = await raw.receive()
            assert refused["error"]["code"] == -32600
            assert "1000 bytes" in refused["error"]["message"]
            assert "id" not in refused
        assert await raw.receive() == answer(2, {})


@pytest.mark.full
def test_the_usual_limit_is_64_mib() -> None:
    with started(ECHO) as child:
        before = memory(child.process.pid)
        text = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}\n'
        child.send(text % (b"x" * 65 * MIB))
        refused = child.receive(30)
        assert refused["error"]["code"] == -32600
        assert str(64 * MIB) in refused["error"]["message"]
        assert refused["id"] == 1
        child.alive()
        child.send(text % (b"x" * 10 * MIB))
        assert len(child.receive(30)["result"]["content"][0]["text"]) == 10 * MIB
        child.alive()
        if sys.platform == "linux":
            assert memory(child.process.pid) - before < 150 * MIB


async def test_a_client_survives_an_answer_that_is_too_large() -> None:
    left, right = pipe_pair(5000)
    async with running(serve(right, Echo())), Client.connect(left) as client:
        assert text_of(await client.call_tool("echo", {"text": "x" * 3000})) == "x" * 3000
        for name, size in (("twice", 3000), ("echo", 4999)):  # too large is either the answer or the request
            with pytest.raises(ProtocolError, match="larger than 5000 bytes"):
                await client.call_tool(name, {"text": "x" * size})
        assert text_of(await client.call_tool("echo", {"text": "y"})) == "y"


# --- peers that are slow --------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("tool", ["echo", "later"])
def test_a_client_that_never_reads_fills_no_memory(faulty: Path, tool: str) -> None:
    with started(faulty) as child:
        before = memory(child.process.pid)
        line = as_line(call(0, tool, text="x" * 10_000))
        os.set_blocking(child.sink, False)
        lines = sent = 0
        rest = b""
        while sent < 64 * MIB:
            _, writable, _ = select.select([], [child.sink], [], 1)
            if not writable:
                break
            while len(rest) < 65536:
                lines += 1
                rest += line.replace(b'"id": 0', b'"id": %d' % lines)
            with suppress(BlockingIOError):
                written = os.write(child.sink, rest[:65536])
                rest, sent = rest[written:], sent + written
        assert sent < 16 * MIB
        if sys.platform == "linux":
            assert memory(child.process.pid) - before < 64 * MIB
        complete = sent // (len(line) + 4)
        seen = {child.receive()["id"] for _ in range(complete)}
        assert len(seen) == complete


@pytest.mark.parametrize("make", [pair, pipe_pair])
async def test_a_server_that_never_reads_holds_nobody_for_ever(
    make: Callable[[], tuple[Transport, Transport]],
) -> None:
    left, right = make()
    raw = Raw(right)
    failures: list[Exception] = []

    async def ask(client: Any) -> None:
        try:
            await client.call_tool("x", {"text": "x" * 100_000})
        except (RequestTimeout, ConnectionClosed) as error:
            failures.append(error)

    async with (
        anyio.create_task_group() as tasks,
        running(raw.welcome({"tools": {}})),
        Client.connect(left) as client,
    ):
        hasty = client.with_options(timeout=0.1)
        async with anyio.create_task_group() as hurry:
            for _ in range(100):
                hurry.start_soon(ask, hasty)
        assert [type(failure) for failure in failures] == [RequestTimeout] * 100
        failures.clear()
        for _ in range(5):
            with anyio.move_on_after(0.02) as scope:
                await ask(client)
            assert scope.cancelled_caught
        for _ in range(100):
            tasks.start_soon(ask, client)
        await anyio.sleep(0.05)
    assert [type(failure) for failure in failures] == [ConnectionClosed] * 100
    await raw.close()


async def test_a_message_that_is_given_up_half_way_damages_no_other() -> None:
    left, right = pipe_pair()
    raw = Raw(right)
    async with running(raw.welcome({"tools": {}})), Client.connect(left) as client:
        for size in (300_000, 70_000, 65_536 - 100):
            with pytest.raises(RequestTimeout):
                await client.with_options(timeout=0.05).call_tool("x", {"text": "x" * size})
            with anyio.move_on_after(0.05):
                await client.call_tool("x", {"text": "y" * size})
        found: list[Any] = []

        async def answering() -> None:
            while True:
                message = await raw.receive()  # each line must be JSON
                found.append(message)
                if message["method"] == "ping":
                    await raw.send(answer(message["id"], {}))
                    return

        async with running(answering()):
            await client.ping()
        asked = [message["id"] for message in found if message["method"] == "tools/call"]
        told = [message["params"]["requestId"] for message in found if "id" not in message]
        assert told == asked
    await raw.close()


@pytest.mark.full
async def test_much_in_both_directions_does_not_jam(faulty: Path) -> None:
    """Either side has more to say than a pipe holds, and asks while it is asked."""

    class Home(Client):
        async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///" + "r" * 50_000)])

    text = "x" * 100_000
    async with Home.connect(stdio(sys.executable, str(faulty))) as client:
        done: list[int] = []

        async def ask(tool: str) -> None:
            for _ in range(3):
                done.append(len(text_of(await client.call_tool(tool, {"text": text}))))

        async with anyio.create_task_group() as tasks:
            for tool in ("echo", "later", "roots") * 20:
                tasks.start_soon(ask, tool)
        assert len(done) == 180
        assert set(done) == {100_000, 150_008}


# --- handlers that never return -------------------------------------------------------------------------------


async def test_a_handler_that_never_returns_keeps_nobody(faulty: Path) -> None:
    async with Client.connect(stdio(sys.executable, str(faulty), stderr=subprocess.DEVNULL)) as client:
        process: Any = client.link.transport
        async with anyio.create_task_group() as tasks:
            with pytest.raises(RequestTimeout):
                await client.with_options(timeout=0.1).call_tool("sleep")
            tasks.start_soon(client.call_tool, "sleep")
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        await client.ping()
    assert process.process.returncode == 0


async def test_a_session_ends_with_its_client_whatever_its_handlers_do() -> None:
    for name in ("sleep", "echo"):
        left, right = pair()
        async with running(serve(right, Echo())):
            raw = Raw(left)
            await raw.introduce(LATEST)
            await raw.send(*(call(n, name) for n in range(10)))
            await raw.close()


# --- processes ------------------------------------------------------------------------------------------------


async def test_a_server_that_dies_fails_its_calls_at_once(faulty: Path) -> None:
    async with Client.connect(stdio(sys.executable, str(faulty), stderr=subprocess.DEVNULL)) as client:
        transport: Any = client.link.transport
        failures: list[ConnectionClosed] = []

        async def ask(name: str) -> None:
            with pytest.raises(ConnectionClosed) as caught:
                await client.call_tool(name)
            failures.append(caught.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "sleep")
            await anyio.sleep(0.05)
            tasks.start_soon(ask, "die")
        assert len(failures) == 2
        with pytest.raises(ConnectionClosed):
            await client.ping()
    assert transport.process.returncode == 3


async def test_a_server_that_is_killed(faulty: Path) -> None:
    async with Client.connect(stdio(sys.executable, str(faulty), stderr=subprocess.DEVNULL)) as client:
        transport: Any = client.link.transport
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ConnectionClosed):
                    await client.call_tool("sleep")

            tasks.start_soon(ask)
            await anyio.sleep(0.05)
            os.kill(transport.process.pid, signal.SIGKILL)
        await client.link.closed.wait()
    assert transport.process.returncode == -signal.SIGKILL


@pytest.mark.full
@pytest.mark.parametrize("tool", ["echo", "sleep"])
def test_a_server_whose_client_is_killed_ends_by_itself(faulty: Path, tmp_path: Path, tool: str) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT, "utf-8")
    client = subprocess.Popen(
        [sys.executable, str(script), str(faulty), tool], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    server = int(client.stdout.readline())
    try:
        assert alive(server)
        time.sleep(0.1)
        client.kill()
        client.communicate(timeout=10)
        assert soon(lambda: not alive(server))
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


async def test_a_server_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN, "utf-8")
    async with Client.connect(stdio(sys.executable, str(script), grace=0.2)) as client:
        transport: Any = client.link.transport
        assert client.server_info.name == "stubborn"
    assert transport.process.returncode == -signal.SIGKILL
    assert not alive(transport.process.pid)


async def test_nothing_is_left_of_a_server(faulty: Path) -> None:
    async with Client.connect(stdio(sys.executable, str(faulty))) as client:
        transport: Any = client.link.transport
        grandchildren = [int(text_of(await client.call_tool("spawn"))) for _ in range(3)]
        assert all(map(alive, grandchildren))
    assert await anyio.to_thread.run_sync(soon, lambda: not any(map(alive, grandchildren)))
    with pytest.raises(ProcessLookupError):
        os.kill(transport.process.pid, 0)  # not even a zombie


async def test_nothing_is_left_when_the_block_fails(faulty: Path) -> None:
    transports: list[Any] = []

    async def fail_among_calls() -> None:
        async with Client.connect(stdio(sys.executable, str(faulty))) as client:
            transports.append(client.link.transport)
            raise KeyError("mine")

    open_before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            await fail_among_calls()
        assert transports[-1].process.returncode == 0
        with anyio.move_on_after(0.2):
            async with Client.connect(stdio(sys.executable, "-c", "import time; time.sleep(3600)", grace=0.1)):
                raise AssertionError
        with pytest.raises(ConnectionClosed):
            async with Client.connect(stdio("/nowhere/to/be/found")):
                raise AssertionError
        with pytest.raises(ConnectionClosed):
            async with Client.connect(stdio(sys.executable, "-c", "pass")):
                raise AssertionError
    gc.collect()
    assert len(list(Path("/dev/fd").iterdir())) <= open_before + 2  # what the event loop keeps


# --- streams of the process -----------------------------------------------------------------------------------


def test_what_is_printed_goes_to_stderr(faulty: Path) -> None:
    with started(faulty) as child:
        assert child.ask(call(1, "loud"))["result"]["content"][0]["text"] == "quiet"
        child.alive()
        code, more, errors = child.end()
        assert (code, more) == (0, b"")
        for word in ("print", "write", "child"):
            assert f"a stray {word}\n".encode() in errors


def test_nobody_else_reads_the_stream(faulty: Path) -> None:
    with started(faulty) as child:
        child.send(call(1, "read"), request(2, "ping"))
        assert child.receive()["result"]["content"][0]["text"] == "nothing to read: ''"
        assert child.receive() == answer(2, {})


@pytest.mark.parametrize("final", [b"\n", b""])
def test_a_file_can_be_the_input(faulty: Path, tmp_path: Path, final: bytes) -> None:
    completion = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "0.1"}}
    messages = [
        initialize(LATEST),
        INITIALIZED,
        *(call(n, "echo", text="x" * 1000) for n in range(500)),
        *(call(n, "later", text="x") for n in range(500, 510)),
        request("in a thread", "completion/complete", completion),
    ]
    source, sink = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b"".join(map(as_line, messages)).removesuffix(b"\n") + final)
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, str(faulty)], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=20
        )
    assert done.returncode == 0
    assert done.stderr == b""
    answered = [strictly(line) for line in sink.read_bytes().splitlines()]
    expected = {0, *range(510), "in a thread"} if final else {0, *range(510)}
    assert all("result" in message for message in answered)
    assert {message["id"] for message in answered} == expected


def test_a_pipe_that_ends_is_answered(faulty: Path) -> None:
    messages = [initialize(LATEST), INITIALIZED, call(1, "echo", text="x"), call(2, "later", text="y")]
    done = subprocess.run(
        [sys.executable, str(faulty)], input=b"".join(map(as_line, messages)), capture_output=True, timeout=20
    )
    assert done.returncode == 0
    assert [strictly(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]


def test_a_connection_that_is_reset_is_over(faulty: Path) -> None:
    """Some hosts give their servers a socket, whose death is not silent."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, str(faulty)], stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE
        )
        theirs.close()
        ours.sendall(as_line(initialize(LATEST)))
        assert strictly(ours.makefile("rb").readline())["id"] == 0
        ours.sendall(as_line(INITIALIZED) + as_line(call(1, "echo", text="x" * 1000)))
        time.sleep(0.2)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert b"Traceback" not in errors


def test_a_server_in_a_terminal_ends_on_ctrl_c(faulty: Path) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen([sys.executable, str(faulty)], stdin=theirs, stdout=subprocess.PIPE)
    try:
        os.write(ours, as_line(initialize(LATEST)))
        assert process.stdout is not None
        assert strictly(process.stdout.readline())["id"] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


async def test_a_transport_closes_twice() -> None:
    left, right = pipe_pair()
    transports: list[Transport] = [left, right, *pair()]
    for transport in transports * 2:
        await transport.close()
    for transport in transports:
        assert list(await transport.receive()) == []
        with pytest.raises(ConnectionClosed):
            await transport.send([b"{}"])


async def test_closing_wakes_who_waits() -> None:
    for make in (pair, pipe_pair):
        left, right = make()
        failures: list[ConnectionClosed] = []

        async def write(transport: Transport = left, failures: list[ConnectionClosed] = failures) -> None:
            try:
                while True:
                    await transport.send([b"x" * 100_000])
            except ConnectionClosed as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await anyio.sleep(0.05)
            assert not failures
            await left.close()
        assert len(failures) == 1
        await right.close()
