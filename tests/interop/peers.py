"""Everybody we talk to, and how."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcp_bindgen.runtime import Transport
from mcp_bindgen.runtime.sse_client import sse
from mcp_bindgen.runtime.stdio import stdio
from mcp_bindgen.runtime.transport import Oversized

from ..wire import Recording
from . import inspector, sdk_client, typescript
from .eavesdrop import Eavesdropper, Overheard
from .everything import EVERYTHING, FILESYSTEM, everything, filesystem
from .ours import ROOTS, client, converse
from .processes import FULL_SERVER, HERE, SDK_SERVER, free_port, listening, node
from .report import REVISIONS, Report

CONVERSATION = 40.0
"""Seconds that a whole conversation may take."""

TRANSPORTS = ("stdio", "sse")


@dataclass(frozen=True, eq=False)
class Peer:
    """Somebody we talk to.

    Attributes:
        name: Who.
        ours: Which side is ours.
        talk: Has a conversation and writes it down.
        package: The package it is in.
        absent: Transport -> why there is no such conversation.
    """

    name: str
    ours: Literal["client", "server"]
    package: str
    talk: Callable[[Report, Path], Awaitable[None]]
    absent: Mapping[str, str] = field(default_factory=dict[str, str])

    async def report(self, revision: str, over: str) -> Report:
        """Talks to the peer."""
        report = Report(self.name, revision, over)
        with TemporaryDirectory() as folder, anyio.fail_after(CONVERSATION):
            await self.talk(report, Path(folder).resolve())
        return report


# --- our client -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def asking(
    report: Report, command: Sequence[str], listen: str = "--sse {address}", roots: Sequence[str] = ROOTS
) -> AsyncGenerator[tuple[Any, Recording]]:
    """Our client, connected to a server.

    Args:
        report: Says in which revision, and over what.
        command: The server.
        listen: The arguments that make it listen for SSE; the port is in its environment too.
        roots: The client's roots.
    """
    if report.transport == "stdio":
        started = stdio(*command, stderr=subprocess.DEVNULL)
        async with started as child, _connected(report, child, roots) as connection:
            yield connection
        with report.step("shutdown"):  # by itself, or when asked; not because we no longer read what it says
            assert child.process.returncode in (0, -signal.SIGTERM), child.process.returncode
        return
    port = free_port()
    address = f"127.0.0.1:{port}"
    url = f"http://{address}/sse"
    async with listening(*command, *listen.format(address=address).split(), port=port):
        async with sse(url) as stream, _connected(report, stream, roots) as connection:
            yield connection
        with report.step("shutdown"):  # the server goes on without us
            async with client(report.revision, ROOTS).connected(sse(url)) as again:
                await again.ping()


@asynccontextmanager
async def _connected(
    report: Report, transport: Transport, roots: Sequence[str]
) -> AsyncGenerator[tuple[Any, Recording]]:
    asker = client(report.revision, roots)
    recording = Recording(transport, report.revision)
    async with asker.connected(recording):
        yield asker, recording
    with report.step("valid messages"):
        assert recording.methods()[:2] == ["initialize", "notifications/initialized"]
        recording.check()


async def sdk_server(report: Report, folder: Path) -> None:
    async with asking(report, SDK_SERVER) as (asker, _):
        await converse(report, asker)


async def everything_server(report: Report, folder: Path) -> None:
    async with asking(report, [node(), EVERYTHING], "sse") as (asker, recording):
        await everything(report, asker, recording.received)


async def filesystem_server(report: Report, folder: Path) -> None:
    async with asking(report, [node(), FILESYSTEM], roots=[folder.as_uri()]) as (asker, recording):
        await filesystem(report, asker, recording.received, folder)


# --- our server -----------------------------------------------------------------------------------------------


class Replay:
    """A transport to nowhere, for a recording of what was said elsewhere."""

    def __init__(self) -> None:
        self.incoming: list[bytes] = []

    async def receive(self) -> Sequence[bytes | Oversized]:
        return [self.incoming.pop()]

    async def send(self, messages: Sequence[bytes]) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing."""


def tapped(report: Report, file: Path) -> list[str]:
    """The command of our server, which offers one revision, and writes to `file` what it says and hears."""
    return [sys.executable, str(HERE / "tap.py"), str(file), *FULL_SERVER, report.revision]


async def valid(report: Report, *conversations: Overheard) -> None:
    """Checks what our server said."""
    with report.step("valid messages"):
        assert conversations
        for conversation in conversations:
            replay = Replay()
            recording = Recording(replay, report.revision)
            for message in conversation.asked:
                replay.incoming.append(message)
                await recording.receive()
            assert len(conversation.said) > 1
            await recording.send(conversation.said)
            recording.check()


async def overheard(report: Report, folder: Path) -> None:
    """Checks what `tap.py` wrote of our server, each time it ran."""
    conversations: list[Overheard] = []
    endings: list[bytes] = []
    for file in folder.glob("*.tap"):
        conversations.append(Overheard())
        for line in file.read_bytes().splitlines():
            mark, _, message = line.partition(b" ")
            kinds = {b">": conversations[-1].asked, b"<": conversations[-1].said}
            kinds.get(mark, endings).append(message if mark in kinds else line)
    await valid(report, *conversations)
    with report.step("shutdown"):  # and no complaints
        assert endings == [b"exit 0"] * len(conversations)


@asynccontextmanager
async def answering(report: Report, offer: str) -> AsyncGenerator[str]:
    """Our server, which offers one revision, or `all`, over SSE; gives its URL, and checks what it said."""
    port = free_port()
    eavesdropper = Eavesdropper(port)
    async with listening(*FULL_SERVER, offer, "--sse", f"127.0.0.1:{port}", port=port) as process:
        async with eavesdropper.listening() as near:
            yield f"http://127.0.0.1:{near}/sse"
        with report.step("shutdown"):
            process.send_signal(signal.SIGTERM)
            assert await process.wait() in (0, -signal.SIGTERM)
    await valid(report, *eavesdropper.sessions())


async def sdk_asks(report: Report, folder: Path) -> None:
    if report.transport == "stdio":
        command, *arguments = tapped(report, folder / "server.tap")
        with (folder / "errors").open("w") as errors:
            transport = stdio_client(StdioServerParameters(command=command, args=arguments), errors)
            async with sdk_client.connected(report, transport, ask=False) as (session, seen):
                await sdk_client.converse(report, session, seen)
        await overheard(report, folder)
    else:
        async with (
            answering(report, "all") as url,
            sdk_client.connected(report, sse_client(url), ask=True) as (session, seen),
        ):
            await sdk_client.converse(report, session, seen)


async def typescript_asks(package: str, report: Report, folder: Path) -> None:
    if report.transport == "stdio":
        command = tapped(report, folder / "server.tap")
        saw = await typescript.look(package, report.revision, "stdio", *command)
        typescript.judge(report, package, saw)
        await overheard(report, folder)
    else:
        async with answering(report, "all") as url:
            saw = await typescript.look(package, report.revision, "sse", url)
            typescript.judge(report, package, saw)


async def sdk_typescript(report: Report, folder: Path) -> None:
    await typescript_asks("sdk", report, folder)


async def new_typescript(report: Report, folder: Path) -> None:
    await typescript_asks("client", report, folder)


async def inspector_asks(report: Report, folder: Path) -> None:
    if report.transport == "stdio":
        printed = await inspector.look(folder, lambda run: tapped(report, folder / f"{run}.tap"))
        inspector.judge(report, printed)
        await overheard(report, folder)
    else:
        async with answering(report, report.revision) as url:
            target = ["--transport", "sse", "--server-url", url]
            inspector.judge(report, await inspector.look(folder, lambda run: target))


PYTHON = (
    Peer("Python SDK, server", "client", "mcp", sdk_server),
    Peer("Python SDK, client", "server", "mcp", sdk_asks),
)
NODE = (
    Peer("server-everything", "client", "@modelcontextprotocol/server-everything", everything_server),
    Peer(
        "server-filesystem",
        "client",
        "@modelcontextprotocol/server-filesystem",
        filesystem_server,
        {"sse": "the server has stdio only"},
    ),
    Peer("TypeScript SDK 1, client", "server", "@modelcontextprotocol/sdk", sdk_typescript),
    Peer("TypeScript SDK 2, client", "server", "@modelcontextprotocol/client", new_typescript),
    Peer("Inspector, command line", "server", "@modelcontextprotocol/inspector", inspector_asks),
)


def cases(peers: Sequence[Peer]) -> list[tuple[Peer, str, str]]:
    """Every peer in every revision over every transport that it has."""
    return [
        (peer, revision, over)
        for peer in peers
        for revision in REVISIONS
        for over in TRANSPORTS
        if over not in peer.absent
    ]
