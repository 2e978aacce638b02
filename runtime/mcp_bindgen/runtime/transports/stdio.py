"""Messages over standard input and output, one a line (MCP, "Transports": stdio).

`StdioServerTransport` takes the process's own streams for itself, so that nothing else can get between the messages.
`stdio` starts a server as a child process and connects to it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process

from ..protocol.access import RequestOrigin
from ..protocol.errors import ConnectionClosed
from ..protocol.transport import MAX_MESSAGE
from .pipes import CHUNK, Pipes

INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER",
    "SYSTEMROOT",
    "APPDATA",
    "TEMP",
)
"""What a child sees of our environment unless it is told otherwise; secrets do not travel by accident."""


class StdioServerTransport(Pipes):
    """The server's end. While it is open, `print` goes to stderr and nobody else reads stdin.

    Args:
        limit: The largest message, in bytes.
    """

    origin = RequestOrigin(network="pipe")

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        sys.stdout.flush()
        super().__init__(os.dup(0), os.dup(1), limit)
        self._saved = os.dup(0), os.dup(1), sys.stdout
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    async def close(self) -> None:
        """Restore the process's own streams."""
        if self._open:
            source, sink, stdout = self._saved
            os.dup2(source, 0)
            os.dup2(sink, 1)
            os.close(source)
            os.close(sink)
            sys.stdout = stdout
        await super().close()


_SILENT = 0.2  # seconds that a server has to end which never said anything


class StdioClientTransport(Pipes):
    """The client's end: a child process.

    Attributes:
        process: The child.
    """

    origin = RequestOrigin(network="pipe")

    def __init__(self, process: Process, source: int, sink: int, limit: int) -> None:
        super().__init__(source, sink, limit)
        self.process = process

    async def close(self) -> None:
        """End the child's input. What it still writes is for `drain`: a closed output would break it."""
        if self._open:
            self._open = False
            self._reader.close()
            anyio.notify_closing(self._sink)
            os.close(self._sink)

    async def drain(self) -> None:
        """Read and discard what the child still writes, until it ends."""
        with suppress(OSError):
            while True:
                await anyio.wait_readable(self._source)
                if not os.read(self._source, CHUNK):
                    return


@asynccontextmanager
async def stdio(
    command: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | Path | None = None,
    stderr: int | IO[Any] | None = None,
    limit: int = MAX_MESSAGE,
    grace: float = 2.0,
) -> AsyncGenerator[StdioClientTransport]:
    """Start a server and connect to it; afterwards the server and all that it started are gone.

    Args:
        command: The program.
        arguments: Its arguments.
        env: Environment variables for it, beside the few that `INHERITED` names.
        inherit_env: Pass on the whole environment.
        cwd: The folder to run it in.
        stderr: Where its error output goes; by default to ours.
        limit: The largest message, in bytes.
        grace: Seconds to wait after closing its input, and again after asking it to terminate; less for one that never
            said anything, which has nothing to finish.

    Raises:
        ConnectionClosed: The program cannot be started.
    """
    known = os.environ if inherit_env else {name: os.environ[name] for name in INHERITED if name in os.environ}
    child_input, sink = os.pipe()
    source, child_output = os.pipe()
    try:
        process = await anyio.open_process(
            [command, *arguments],
            stdin=child_input,
            stdout=child_output,
            stderr=stderr,
            cwd=cwd,
            env={**known, **(env or {})},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # no such program, or NUL or half a character in a word
        os.close(source)
        os.close(sink)
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConnectionClosed(f"{command} cannot be started: {reason}") from None
    finally:
        os.close(child_input)
        os.close(child_output)
    transport = StdioClientTransport(process, source, sink, limit)
    try:
        yield transport
    finally:
        with anyio.CancelScope(shield=True):
            await transport.close()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(transport.drain)
                await _stop(process, grace if transport.has_heard else min(grace, _SILENT))
                tasks.cancel_scope.cancel()
            os.close(source)
            await process.aclose()


async def _stop(process: Process, grace: float) -> None:
    """Wait for the child to end by itself, then kill it; its own children, in its group, are killed, too."""
    for insist in (None, signal.SIGTERM, signal.SIGKILL):
        if insist is not None:
            _signal(process.pid, insist)
        with anyio.move_on_after(grace):
            await process.wait()
            break
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
