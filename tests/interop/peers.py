"""The peers of the interoperability tests, and the conversations with them."""

from __future__ import annotations

import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import anyio
import httpx2
import pytest

from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime import Transport, connect
from mcp_bindgen.runtime.protocol.errors import UnsupportedRevision
from mcp_bindgen.runtime.protocol.transport import Oversized
from mcp_bindgen.runtime.transports.stdio import stdio
from tests.harness.checked_connections import Recording
from tests.interop import inspector, typescript
from tests.interop.eavesdrop import Eavesdropper, Overheard
from tests.interop.everything import EVERYTHING, FILESYSTEM, everything, filesystem
from tests.interop.ours import ROOTS, client, converse
from tests.interop.processes import (
    FULL_SERVER,
    HERE,
    NODE_SERVER,
    SDK_SERVER,
    free_port,
    listening,
    node,
)
from tests.interop.report import REVISIONS, STATEFUL, STEP, Report

CONVERSATION = 300.0
"""Limit of a whole conversation in seconds."""

TRANSPORTS = {"stdio": REVISIONS, "sse": STATEFUL, "http": REVISIONS[1:]}
"""Transport -> the revisions to test over it."""

FEW = {"stdio": REVISIONS[::2], "sse": STATEFUL[::2], "http": (*REVISIONS[1::2], REVISIONS[-1])}
"""Transport -> a subset of its revisions; together they cover every revision, and HTTP covers both eras."""

PATHS = {"sse": "/sse", "http": "/mcp"}

Place: TypeAlias = int | Sequence[str]
"""Location of a server: the port on which it listens, or the command that starts it for one conversation."""


@dataclass(frozen=True, eq=False)
class Peer:
    """Implementation of MCP to test with ours.

    Attributes:
        name: The name of the implementation.
        ours: Which side is ours.
        package: The package that contains it.
        serves: The command of the server for some conversations, given the address to listen on unless over stdio.
        talk: Has a conversation and records it in a report.
        absent: Transport -> why the peer does not support it.
        alone: Whether each conversation needs a server of its own.
    """

    name: str
    ours: Literal["client", "server"]
    package: str
    serves: Callable[[Sequence[Report], str | None], Sequence[str]]
    talk: Callable[[Report, Place, Path], Awaitable[None]]
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    alone: bool = False

    def few(self, over: str) -> Sequence[str]:
        """Return the revisions for a shorter test: a subset over HTTP+SSE, and if each conversation has its own server.

        All transports together still cover every revision; a peer with a single transport is tested in all revisions.
        """
        apart = self.alone or over == "stdio" or (over == "sse" and "http" not in self.absent)
        return FEW[over] if apart and len(self.absent) < 2 else TRANSPORTS[over]

    async def reports(self, over: str, revisions: Sequence[str] = ()) -> list[Report]:
        """Have conversations in these revisions, or in all; concurrently if they share a listening server."""
        reports = [Report(self.name, revision, over) for revision in revisions or TRANSPORTS[over]]
        for group in [[each] for each in reports] if self.alone or over == "stdio" else [reports]:
            async with self.serving(group) as place, anyio.create_task_group() as tasks:
                for report in group:
                    tasks.start_soon(self._report, report, place)
        return reports

    async def _report(self, report: Report, place: Place) -> None:
        with TemporaryDirectory() as folder:
            try:
                with anyio.fail_after(CONVERSATION):
                    await self.talk(report, place, Path(folder).resolve())
            except Exception:
                report.failures["the conversation"] = traceback.format_exc()

    @asynccontextmanager
    async def serving(self, reports: Sequence[Report]) -> AsyncGenerator[Place]:
        """Run the server for conversations over one transport; report the shutdown of our server."""
        if reports[0].transport == "stdio":
            yield self.serves(reports, None)
            return
        port = free_port()
        async with listening(*self.serves(reports, f"127.0.0.1:{port}"), port=port) as process:
            yield port
            if self.ours == "client":
                return
            process.send_signal(signal.SIGTERM)
            code = await process.wait()
        for report in reports:
            if "shutdown" not in report.tried:
                with report.step("shutdown"):
                    assert code in (0, -signal.SIGTERM)


# --- our client -----------------------------------------------------------------------------------------------


def url(report: Report, port: int) -> str:
    """Return the URL of a server."""
    return f"http://127.0.0.1:{port}{PATHS[report.transport]}"


def way(report: Report, place: Place) -> AbstractAsyncContextManager[Any]:
    """Return the transport to a server."""
    if not isinstance(place, int):
        return stdio(*place, stderr=subprocess.DEVNULL)
    return sse(url(report, place)) if report.transport == "sse" else http(url(report, place))


@asynccontextmanager
async def asking(report: Report, place: Place, roots: Sequence[str] = ROOTS) -> AsyncGenerator[tuple[Any, Listener]]:
    """Yield our client, connected to a server, and the recording of its messages.

    Args:
        report: The report with the revision and the transport.
        place: The location of the server.
        roots: The client's roots.
    """
    if not isinstance(place, int):
        async with way(report, place) as child, _connected(report, child, roots) as connection:
            yield connection
        with report.step("shutdown"):  # exits on EOF or SIGTERM; a closed pipe would be a failure
            assert child.process.returncode in (0, -signal.SIGTERM), child.process.returncode
        return
    async with Eavesdropper(place).listening() as near:
        async with way(report, near) as stream, _connected(report, stream, roots) as connection:
            yield connection
        with report.step("shutdown"):  # the server still accepts connections
            async with client(report.revision, ROOTS).connected(way(report, near), exactly=True) as again:
                await (again.list_tools() if report.stateless else again.ping())


class Listener(Recording):
    """Recording that keeps the header mirror of its transport."""

    def __init__(self, transport: Transport, *revisions: str) -> None:
        super().__init__(transport, *revisions)
        self.mirror = transport.mirror


@asynccontextmanager
async def _connected(
    report: Report, transport: Transport, roots: Sequence[str]
) -> AsyncGenerator[tuple[Any, Listener]]:
    asker = client(report.revision, roots)
    recording = Listener(transport, report.revision)
    async with asker.connected(recording, exactly=True):
        yield asker, recording
    with report.step("valid messages"):
        opening = ["server/discover"] if report.stateless else ["initialize", "notifications/initialized"]
        assert recording.methods()[: len(opening)] == opening
        recording.check()


async def refused(report: Report, place: Place) -> bool:
    """Return True if the report's revision is stateless and the server rejects it; record the reason."""
    if not report.stateless:
        return False
    with pytest.raises(UnsupportedRevision) as caught:
        async with client(report.revision, ROOTS).connected(way(report, place), exactly=True):
            pass
    report.skip_all(f"the server says to server/discover: {caught.value.__cause__}")
    return True


async def found(peer: Peer, over: str) -> str:
    """Return the revision that clients of all our revisions negotiate with a server."""
    report = Report(peer.name, STATEFUL[-1], over)
    async with peer.serving([report]) as place:
        target = url(report, place) if isinstance(place, int) else place
        async with connect(target, stderr=subprocess.DEVNULL) as chosen:
            assert [each.name async for each in chosen.iter_tools()]
            revision: str = chosen.revision
            return revision


async def fixture_server(report: Report, place: Place, folder: Path) -> None:
    async with asking(report, place) as (asker, _):
        await converse(report, asker)


async def everything_server(report: Report, place: Place, folder: Path) -> None:
    if not await refused(report, place):
        async with asking(report, place) as (asker, recording):
            await everything(report, asker, recording.received)


async def filesystem_server(report: Report, place: Place, folder: Path) -> None:
    if not await refused(report, place):
        async with asking(report, place, roots=[folder.as_uri()]) as (asker, recording):
            await filesystem(report, asker, recording.received, folder)


# --- our server -----------------------------------------------------------------------------------------------


class Replay(Transport):
    """Transport that replays recorded messages and drops outgoing messages."""

    def __init__(self) -> None:
        self.incoming: list[bytes] = []

    async def receive(self) -> Sequence[bytes | Oversized]:
        return [self.incoming.pop()]

    async def send(self, messages: Sequence[bytes]) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def tapped(report: Report, file: Path) -> list[str]:
    """Return the command that runs our server and records its messages to `file`."""
    offer = "all" if report.stateless else report.revision  # a handshake gets its only revision
    return [sys.executable, "-IS", str(HERE / "tap.py"), str(file), *FULL_SERVER, offer]


async def valid(report: Report, conversations: Sequence[Overheard]) -> None:
    """Validate the messages of our server, if there was a conversation."""
    if not report.works:
        return
    with report.step("valid messages"):
        assert sum(len(conversation.said) for conversation in conversations) > 1
        for conversation in conversations:
            replay = Replay()
            recording = Recording(replay, report.revision)
            for message in conversation.asked:
                replay.incoming.append(message)
                await recording.receive()
            if conversation.said:
                await recording.send(conversation.said)
            recording.check()


async def overheard(report: Report, folder: Path) -> None:
    """Validate the recordings of `tap.py`, one for each run of our server, if there was a conversation."""
    if not report.works:
        return
    conversations: list[Overheard] = []
    endings: list[bytes] = []
    for file in folder.glob("*.tap"):
        conversations.append(Overheard())
        for line in file.read_bytes().splitlines():
            mark, _, message = line.partition(b" ")
            kinds = {b">": conversations[-1].asked, b"<": conversations[-1].said}
            kinds.get(mark, endings).append(message if mark in kinds else line)
    await valid(report, conversations)
    with report.step("shutdown"):  # `endings` also has lines of stderr
        assert endings == [b"exit 0"] * len(conversations), endings


@asynccontextmanager
async def answering(report: Report, place: int) -> AsyncGenerator[str]:
    """Yield the URL of our server; afterwards validate its messages."""
    eavesdropper = Eavesdropper(place)
    async with eavesdropper.listening() as near:
        yield url(report, near)
    await valid(report, eavesdropper.conversations())


async def sdk_asks(report: Report, place: Place, folder: Path) -> None:
    from mcp.client.sse import sse_client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    from tests.interop import sdk_client

    if not isinstance(place, int):
        command, *arguments = tapped(report, folder / "server.tap")
        with (folder / "errors").open("w") as errors:
            transport = stdio_client(StdioServerParameters(command=command, args=arguments), errors)
            async with sdk_client.connected(report, transport, ask=False) as connection:
                await sdk_client.converse(report, *connection)
        await overheard(report, folder)
    else:
        timeout = httpx2.Timeout(STEP, read=CONVERSATION)
        async with answering(report, place) as address, httpx2.AsyncClient(timeout=timeout) as caller:
            over_sse = sse_client(address, timeout=STEP)
            way = over_sse if report.transport == "sse" else streamable_http_client(address, http_client=caller)
            async with sdk_client.connected(report, way, ask=True) as connection:
                await sdk_client.converse(report, *connection)


async def typescript_asks(package: str, report: Report, place: Place, folder: Path) -> None:
    if not isinstance(place, int):
        command = tapped(report, folder / "server.tap")
        typescript.judge(report, package, await typescript.look(package, report.revision, "stdio", *command))
        await overheard(report, folder)
    else:
        async with answering(report, place) as address:
            typescript.judge(
                report, package, await typescript.look(package, report.revision, report.transport, address)
            )


async def inspector_asks(report: Report, place: Place, folder: Path) -> None:
    if not isinstance(place, int):
        printed = await inspector.look(report, folder, lambda run: tapped(report, folder / f"{run}.tap"))
        inspector.judge(report, printed)
        await overheard(report, folder)
    else:
        async with answering(report, place) as address:
            target = ["--transport", report.transport, "--server-url", address]
            inspector.judge(report, await inspector.look(report, folder, lambda run: target))


def fixture(reports: Sequence[Report], address: str | None) -> Sequence[str]:
    """Return the command of our server with all revisions, or with the revision of a single report."""
    return [*FULL_SERVER, reports[0].revision if len(reports) == 1 else "all", *listen(address)]


def listen(address: str | None) -> Sequence[str]:
    """Return the arguments that make a server listen."""
    return [] if address is None else ["--http", address]


PYTHON = (
    Peer(
        "Python SDK, server",
        "client",
        "mcp",
        lambda _, address: [*SDK_SERVER, *listen(address)],
        fixture_server,
        alone=True,  # sessions share an event store that names streams by request id only
    ),
    Peer("Python SDK, client", "server", "mcp", fixture, sdk_asks),
)
NODE = (
    Peer(
        "TypeScript SDK 2, server",
        "client",
        "@modelcontextprotocol/server",
        lambda _, address: [node(), NODE_SERVER, *listen(address)],
        fixture_server,
        {"sse": "the SDK has no such server"},
    ),
    Peer(
        "server-everything (TypeScript SDK 1)",
        "client",
        "@modelcontextprotocol/server-everything",
        lambda reports, _: [node(), EVERYTHING, reports[0].transport.replace("http", "streamableHttp")],
        everything_server,
    ),
    Peer(
        "server-filesystem (TypeScript SDK 1)",
        "client",
        "@modelcontextprotocol/server-filesystem",
        lambda *_: [node(), FILESYSTEM],
        filesystem_server,
        dict.fromkeys(["sse", "http"], "the server has stdio only"),
    ),
    Peer("TypeScript SDK 1, client", "server", "@modelcontextprotocol/sdk", fixture, partial(typescript_asks, "sdk")),
    Peer(
        "TypeScript SDK 2, client",
        "server",
        "@modelcontextprotocol/client",
        fixture,
        partial(typescript_asks, "client"),
    ),
    Peer(
        "Inspector, command line",
        "server",
        "@modelcontextprotocol/inspector",
        fixture,
        inspector_asks,
        alone=True,  # the Inspector cannot request an old revision
    ),
)


def cases(peers: Sequence[Peer]) -> list[tuple[Peer, str]]:
    """Return every peer with each of its transports."""
    return [(peer, over) for peer in peers for over in TRANSPORTS if over not in peer.absent]
