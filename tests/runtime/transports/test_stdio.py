"""Faults between processes: damaged lines, huge messages, and peers that hang, die, or do not exit."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcp_bindgen.runtime import ConnectionClosed, RequestTimeout, Server, Transport, serve
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Oversized
from mcp_bindgen.runtime.transports import pipes as pipes_module
from mcp_bindgen.runtime.transports import stdio as stdio_module
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.pipes import Lines
from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2025_11_25 import Client, Context
from mcp_bindgen.v2025_11_25 import Server as LatestServer
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import (
    INITIALIZED,
    Raw,
    Recording,
    answer,
    initialize,
    notification,
    pipe_pair,
    refused,
    request,
    running,
    scripted,
    strictly,
)
from tests.harness.commands import ROOT, execute
from tests.harness.forks import PYTHON
from tests.harness.processes import alive

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
        text = await getattr(self, params.name)(ctx, **(params.arguments or {}))
        return mcp.CallToolResult(content=[mcp.TextContent(text=str(text))])
    def complete(self, params, ctx):
        time.sleep(float(params.argument.value))
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=["slept"]))
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


# --- helpers --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a server script that misbehaves."""
    path = tmp_path_factory.mktemp("faults") / "faulty.py"
    path.write_text(SERVER, "utf-8")
    return path


class Child:
    """Server process with raw access to its streams."""

    def __init__(self, script: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([PYTHON, str(script)], bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.sink, self.source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.lines, self.ready = Lines(1024 * MIB), list[bytes | Oversized]()

    def send(self, *messages: object) -> None:
        """Write messages at once, one per line; blocks until the child reads them."""
        view = memoryview(b"".join(as_line(message) for message in messages))
        while view:
            view = view[os.write(self.sink, view) :]

    def receive(self, seconds: float = 60) -> Any:
        """Return the next message."""
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
        """Write one message and return the next message that arrives."""
        self.send(message)
        return self.receive()

    def alive(self) -> None:
        """Check that the connection still works."""
        assert self.ask(request("alive?", "ping")) == answer("alive?", {})

    def end(self) -> tuple[int, bytes, bytes]:
        """Close the input of the server; return its exit code and its remaining output."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


def as_line(message: object) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


def connected_to(script: Path, **options: Any) -> Any:
    """Connect a client to a server process."""
    return Client.connect(stdio(sys.executable, str(script), stderr=subprocess.DEVNULL, **options))


@contextmanager
def started(script: Path) -> Generator[Child]:
    """Start a server process and complete the handshake."""
    child = Child(script)
    try:
        assert child.ask(initialize(LATEST))["id"] == 0
        child.send(INITIALIZED)
        yield child
    finally:
        if child.process.returncode is None:
            child.process.kill()
            child.process.communicate(timeout=60)


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
    """Return the resident memory of a process in bytes."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True).stdout) * 1024


class Echo(LatestServer):
    """Server that returns the text of the call."""

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
    """Serve over pipes and yield a raw client."""
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
def test_lines_are_found_for_any_chunk_size(size: int) -> None:
    text = b'{"a":1}\n\n \r\n{"b":"\xc3\xa9"}\r\n' + b"x" * 30 + b"\n" + b"y" * 31 + b"\n" + b"z" * 300 + b"\n{}\nhalf"
    lines = Lines(30)
    found = [line for start in range(0, len(text), size) for line in lines.feed(text[start : start + size])]
    assert [len(line) if isinstance(line, bytes) else None for line in found] == [7, 11, 30, None, None, 2]
    assert lines.feed(b"\n") == [b"half"]


def test_only_the_head_of_an_oversized_line_is_kept() -> None:
    lines = Lines(10)
    for _ in range(1000):
        assert lines.feed(b"x" * 1000) == []
    assert len(pickle.dumps(lines)) < 1000
    (found,) = lines.feed(b"\n")
    assert isinstance(found, Oversized)
    assert found.head == b"x" * 256
    for start in range(0, 2000, 3):
        lines.feed(bytes(str(start), "ascii"))
    (found,) = lines.feed(b"\n")
    assert isinstance(found, Oversized)
    assert found.head == b"036912151821"[: len(found.head)]
    assert len(found.head) > 10


@pytest.mark.full
def test_messages_may_arrive_in_parts(faulty: Path) -> None:
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


@pytest.mark.full
def test_an_incomplete_line_at_eof_is_ignored(faulty: Path) -> None:
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
    (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"\\ud83d"}}', -32602, "a"),
    (b'{"jsonrpc":"2.0","id":"a","method":"tools/fly"}', -32601, "a"),
    (b'{"id":"a","method":"ping"}', -32600, "a"),
    (b"[]", -32600, None),
]


def test_damaged_messages_get_errors_and_the_connection_stays_open(faulty: Path) -> None:
    with started(faulty) as child:
        for data, code, id_ in DAMAGE:
            answered = child.ask(data + b"\n")
            assert (answered["error"]["code"], answered.get("id")) == (code, id_)
            child.alive()
        child.send(answer(1, {}), answer("x", None), {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": ""}})
        child.send({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}})
        child.alive()
        code, _, errors = child.end()
        assert (code, b"Traceback" in errors) == (0, False)


async def test_a_client_survives_damaged_messages_from_its_server() -> None:
    async def script(raw: Raw) -> None:
        await raw.welcome({"tools": {}})
        asked = await raw.receive()
        for data, *_ in DAMAGE:
            await raw.send(data)
        await raw.send(b"Server started!", answer(99, {}), answer("x", {}), notification("nope"))
        await raw.send(request("x", "nope"), answer(asked["id"], {"content": []}))
        while (await raw.receive()).get("id") != "x":
            pass
        await raw.send(answer((await raw.receive())["id"], {"content": [], "isError": "maybe"}))

    async with scripted(Client(), script) as client:
        assert (await client.call_tool("x")).content == []
        await refused(client.call_tool("y"), match="isError")


# --- size -----------------------------------------------------------------------------------------------------


async def test_an_oversized_message_is_refused_and_the_connection_stays_open() -> None:
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
            assert (refused["error"]["code"], "id" in refused) == (-32600, False)
            assert "1000 bytes" in refused["error"]["message"]
        assert await raw.receive() == answer(2, {})


@pytest.mark.full
def test_the_default_message_limit_is_64_mib() -> None:
    with started(ECHO) as child:
        before = memory(child.process.pid)
        text = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}\n'
        child.send(text % (b"x" * 65 * MIB))
        refused = child.receive()
        assert (refused["error"]["code"], refused["id"]) == (-32600, 1)
        assert str(64 * MIB) in refused["error"]["message"]
        child.alive()
        child.send(text % (b"x" * 10 * MIB))
        assert len(child.receive()["result"]["content"][0]["text"]) == 10 * MIB
        child.alive()
        if sys.platform == "linux":
            assert memory(child.process.pid) - before < 150 * MIB


async def test_an_oversized_request_or_response_fails_only_its_call() -> None:
    left, right = pipe_pair(5000)
    async with running(serve(right, Echo())), Client.connect(left) as client:
        assert text_of(await client.call_tool("echo", {"text": "x" * 3000})) == "x" * 3000
        for name, size in (("twice", 3000), ("echo", 4999)):  # the response is too large, then the request
            await refused(client.call_tool(name, {"text": "x" * size}), match="larger than 5000 bytes")
        assert text_of(await client.call_tool("echo", {"text": "y"})) == "y"


# --- slow peers -----------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("tool", ["echo", "later"])
def test_a_client_that_never_reads_does_not_exhaust_server_memory(faulty: Path, tool: str) -> None:
    with started(faulty) as child:
        before, line = memory(child.process.pid), as_line(call(0, tool, text="x" * 10_000))
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
        assert len({child.receive()["id"] for _ in range(complete)}) == complete


@pytest.mark.parametrize("make", [pair, pipe_pair])
async def test_calls_to_a_server_that_never_reads_do_not_hang(make: Any) -> None:
    left, right = make()
    raw, large = Raw(right), {"text": "x" * 100_000}
    async with running(raw.welcome({"tools": {}})), Client.connect(left) as client:
        hasty = client.with_options(timeout=0.1)
        await asyncio.gather(*(refused(hasty.call_tool("x", large), RequestTimeout) for _ in range(100)))
        for _ in range(5):
            with anyio.move_on_after(0.02) as scope:
                await client.call_tool("x", large)
            assert scope.cancelled_caught
        waiting = asyncio.gather(*(refused(client.call_tool("x", large), ConnectionClosed) for _ in range(100)))
        await anyio.wait_all_tasks_blocked()
    await waiting
    await raw.close()


async def test_a_message_abandoned_during_its_write_damages_no_other_message() -> None:
    left, right = pipe_pair()
    raw = Raw(right)
    async with running(raw.welcome({"tools": {}})), Client.connect(left) as client:
        for size in (300_000, 70_000, 65_536 - 100):
            await refused(client.with_options(timeout=0.05).call_tool("x", {"text": "x" * size}), RequestTimeout)
            with anyio.move_on_after(0.05):
                await client.call_tool("x", {"text": "y" * size})
        found: list[Any] = []

        async def answering() -> None:
            while not found or found[-1]["method"] != "ping":
                found.append(await raw.receive())  # each line must be JSON
            await raw.send(answer(found[-1]["id"], {}))

        async with running(answering()):
            await client.ping()
        asked = [message["id"] for message in found if message["method"] == "tools/call"]
        assert [message["params"]["requestId"] for message in found if "id" not in message] == asked
    await raw.close()


@pytest.mark.full
async def test_large_messages_in_both_directions_do_not_deadlock(faulty: Path) -> None:
    """Both sides send more than a pipe holds, and requests cross."""

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
        assert (len(done), set(done)) == (180, {100_000, 150_008})


# --- handlers that never return -------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_handler_that_never_returns_blocks_neither_requests_nor_exit(faulty: Path) -> None:
    async with connected_to(faulty) as client:
        process: Any = client.link.transport
        async with anyio.create_task_group() as tasks:
            await refused(client.with_options(timeout=0.1).call_tool("sleep"), RequestTimeout)
            tasks.start_soon(client.call_tool, "sleep")
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        await client.ping()
    assert process.process.returncode == 0


# --- processes ------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_server_that_dies_fails_its_calls_at_once(faulty: Path) -> None:
    async with connected_to(faulty) as client:
        transport: Any = client.link.transport
        async with anyio.create_task_group() as tasks:
            for name in ("sleep", "die"):
                tasks.start_soon(refused, client.call_tool(name), ConnectionClosed)
        await refused(client.ping(), ConnectionClosed)
    assert transport.process.returncode == 3


async def test_a_killed_server_fails_open_calls_and_closes_the_connection(faulty: Path) -> None:
    async with connected_to(faulty) as client:
        transport: Any = client.link.transport
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused, client.call_tool("sleep"), ConnectionClosed)
            await anyio.wait_all_tasks_blocked()
            os.kill(transport.process.pid, signal.SIGKILL)
        await client.link.closed.wait()
    assert transport.process.returncode == -signal.SIGKILL


@pytest.mark.full
@pytest.mark.parametrize("tool", ["echo", "sleep"])
def test_a_server_exits_when_its_client_is_killed(faulty: Path, tmp_path: Path, tool: str) -> None:
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
        client.communicate(timeout=60)
        assert soon(lambda: not alive(server))
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


async def test_a_server_that_ignores_eof_and_sigterm_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN, "utf-8")
    async with Client.connect(stdio(sys.executable, str(script), grace=0.2)) as client:
        transport: Any = client.link.transport
        assert client.server_info.name == "stubborn"
    assert transport.process.returncode == -signal.SIGKILL
    assert not alive(transport.process.pid)


async def test_closing_a_client_ends_all_processes_of_its_server(faulty: Path) -> None:
    async with connected_to(faulty) as client:
        transport: Any = client.link.transport
        grandchildren = [int(text_of(await client.call_tool("spawn"))) for _ in range(3)]
        assert all(map(alive, grandchildren))
    assert await anyio.to_thread.run_sync(soon, lambda: not any(map(alive, grandchildren)))
    with pytest.raises(ProcessLookupError):
        os.kill(transport.process.pid, 0)  # not even a zombie


@pytest.mark.full
async def test_a_failed_client_block_leaves_no_process_and_no_open_file(faulty: Path) -> None:
    transports: list[Any] = []

    async def fail_among_calls() -> None:
        async with connected_to(faulty) as client:
            transports.append(client.link.transport)
            raise KeyError("mine")

    open_before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        await refused(fail_among_calls(), KeyError, match="mine")
        assert transports[-1].process.returncode == 0
        with anyio.move_on_after(0.2):
            async with Client.connect(stdio(sys.executable, "-c", "import time; time.sleep(3600)", grace=0.1)):
                raise AssertionError
        for command in (["/nowhere/to/be/found"], [sys.executable, "-c", "pass"]):
            with pytest.raises(ConnectionClosed):
                async with Client.connect(stdio(*command)):
                    raise AssertionError
    assert len(list(Path("/dev/fd").iterdir())) <= open_before + 2  # kept by the event loop


# --- streams of the process -----------------------------------------------------------------------------------


def test_stray_output_of_handlers_goes_to_stderr(faulty: Path) -> None:
    with started(faulty) as child:
        assert child.ask(call(1, "loud"))["result"]["content"][0]["text"] == "quiet"
        child.alive()
        code, more, errors = child.end()
        assert (code, more) == (0, b"")
        for word in ("print", "write", "child"):
            assert f"a stray {word}\n".encode() in errors


def test_handlers_cannot_read_the_protocol_stream(faulty: Path) -> None:
    with started(faulty) as child:
        child.send(call(1, "read"), request(2, "ping"))
        assert child.receive()["result"]["content"][0]["text"] == "nothing to read: ''"
        assert child.receive() == answer(2, {})


@pytest.mark.full
@pytest.mark.parametrize("final", [b"\n", b""])
def test_a_file_can_be_standard_input(faulty: Path, tmp_path: Path, final: bytes) -> None:
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
            [sys.executable, str(faulty)], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, b"")
    answered = [strictly(line) for line in sink.read_bytes().splitlines()]
    expected = {0, *range(510), "in a thread"} if final else {0, *range(510)}
    assert all("result" in message for message in answered)
    assert {message["id"] for message in answered} == expected


@pytest.mark.full
def test_requests_before_eof_get_responses(faulty: Path) -> None:
    messages = [initialize(LATEST), INITIALIZED, call(1, "echo", text="x"), call(2, "later", text="y")]
    done = execute(sys.executable, str(faulty), stdin=b"".join(map(as_line, messages)).decode())
    assert (done.returncode, [json.loads(line)["id"] for line in done.stdout.splitlines()]) == (0, [0, 1, 2])


@pytest.mark.full
def test_a_server_exits_cleanly_when_its_connection_is_reset(faulty: Path) -> None:
    """Some hosts give their servers a socket, which reports a reset instead of EOF."""
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
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in errors


@pytest.mark.full
def test_a_server_in_a_terminal_ends_on_ctrl_c(faulty: Path) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen([sys.executable, str(faulty)], stdin=theirs, stdout=subprocess.PIPE)
    try:
        os.write(ours, as_line(initialize(LATEST)))
        assert process.stdout is not None
        assert strictly(process.stdout.readline())["id"] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


async def test_a_transport_may_be_closed_twice() -> None:
    left, right = pipe_pair()
    transports: list[Transport] = [left, right, *pair()]
    for transport in transports * 2:
        await transport.close()
    for transport in transports:
        assert list(await transport.receive()) == []
        await refused(transport.send([b"{}"]), ConnectionClosed)


async def test_closing_a_transport_fails_pending_writes() -> None:
    for make in (pair, pipe_pair):
        left, right = make()

        async def write(transport: Transport = left) -> None:
            while True:
                await transport.send([b"x" * 100_000])

        writing = asyncio.ensure_future(refused(write(), ConnectionClosed))
        await anyio.sleep(0.05)
        assert not writing.done()
        await left.close()
        await writing
        await right.close()


def _refuse(*arguments: object) -> Any:
    raise NotImplementedError


class PlainLoop(asyncio.SelectorEventLoop):
    """Event loop that cannot watch file descriptors."""

    add_reader = remove_reader = add_writer = remove_writer = _refuse  # type: ignore[assignment]


def on_plain_loop(work: Any) -> None:
    anyio.run(work, backend_options={"loop_factory": PlainLoop})


def test_messages_larger_than_a_pipe_pass_both_ways() -> None:
    async def talk() -> None:
        left, right = pipe_pair()
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
        await refused(left.send([b"x"]), ConnectionClosed)
        await left.close()

    on_plain_loop(talk)


def test_a_pipe_is_closed_once_the_thread_that_writes_has_ended() -> None:
    async def talk() -> None:
        left, right = pipe_pair()
        with anyio.move_on_after(0.05):
            await left.send([b"y" * 1_000_000])
        await left.close()
        with anyio.fail_after(10):
            assert [await right.receive(), await right.receive()] == [[b"y" * 1_000_000], ()]
        await right.close()

    on_plain_loop(talk)


def test_cancelled_reads_and_writes_lose_no_message_and_split_none() -> None:
    async def talk() -> None:
        left, right = pipe_pair()
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
            await left.receive()  # a thread reads when the descriptor is closed
        await left.close()
        assert await left.receive() == ()
        await right.close()

    on_plain_loop(talk)


def test_a_thread_that_begins_to_read_after_the_end_of_its_connection_takes_no_message_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = list[Callable[[], object]]()

    def thread(target: Callable[[], object], daemon: bool) -> Any:
        return SimpleNamespace(start=lambda: late.append(target))

    async def talk() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(pipes_module, "Thread", thread)
            async with stdio(sys.executable, "-c", "") as ended:
                with anyio.move_on_after(0):
                    await ended.receive()
        left, right = pipe_pair()  # it gets the numbers of the closed descriptors
        for sender in (left, right):
            await sender.send([b"{}"])
        late.pop()()
        for receiver in (left, right):
            with anyio.fail_after(10):
                assert await receiver.receive() == [b"{}"]
        for read in late:
            read()
        await left.close()
        await right.close()

    on_plain_loop(talk)


@pytest.mark.full
def test_a_client_starts_a_server() -> None:
    async def talk() -> None:
        async with Client.connect([sys.executable, str(ROOT / "benchmarks" / "echo_server.py")]) as client:
            assert (await client.list_tools()).tools

    on_plain_loop(talk)


PROGRAM = """
import anyio
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types
from tests.runtime.transports.test_stdio import PlainLoop
class Echo(Server):
    info = types.Implementation(name="echo", version="1")
    async def list_tools(self, params, ctx): return types.ListToolsResult(tools=[])
real = anyio.run
anyio.run = lambda work: real(work, backend_options={"loop_factory": PlainLoop})
run(Echo())
"""


def test_a_server_answers_and_exits_at_eof() -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in (initialize("2025-11-25"), INITIALIZED, request(2, "tools/list")))
    done = execute(PYTHON, "-c", PROGRAM, stdin=lines, PYTHONPATH=str(ROOT))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 2], done.stderr
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_a_server_with_a_thread_waiting_for_input() -> None:
    command = [sys.executable, "-c", PROGRAM]
    pipes: Any = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(initialize('2025-11-25'))}\n".encode())
        server.stdin.flush()
        assert select.select([server.stdout.fileno()], [], [], 60)[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130


DEAF = """
import sys, time
sys.stdin.read()
time.sleep(3600)
"""


def test_without_process_groups_a_child_that_ignores_eof_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows, where `os.killpg` does not exist."""
    monkeypatch.setattr(stdio_module, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.delattr(os, "killpg")
    pids, start = list[int](), anyio.open_process

    async def open_process(*arguments: Any, **options: Any) -> Any:
        process = await start(*arguments, **options)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(anyio, "open_process", open_process)

    async def talk() -> None:
        async with stdio(sys.executable, "-c", DEAF, grace=0.1):
            pass

    on_plain_loop(talk)
    (pid,) = pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
