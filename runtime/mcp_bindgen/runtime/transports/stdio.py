"""Connections to servers that run as child processes (MCP, "Transports": stdio)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process

from ..protocol.errors import ConnectionClosed
from ..protocol.transport import MAX_MESSAGE
from .pipes import Pipes, reader_of

INHERITED = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "USERNAME", "USERPROFILE", "MCP_BINDGEN_HOME"),
)
"""Environment variables that a child process gets by default; secrets do not travel by accident."""

_SILENT_GRACE_SECONDS = 0.2  # for a server that never wrote anything
_EXIT_SECONDS = 0.5  # that a process gets to end after it closed its side


class StdioClientTransport(Pipes):
    """The client's end, beside a child process.

    Args:
        process: The child process.
        source: The descriptor of its output.
        sink: The descriptor of its input.
        limit: The largest message, in bytes.
        advice: Advice to add to the error of a process that failed.

    Attributes:
        process: The child process.
    """

    def __init__(self, process: Process, source: int, sink: int, limit: int, advice: str = "") -> None:
        super().__init__(source, sink, limit)
        self.process: Process = process
        self._advice = advice

    async def exit(self) -> str:
        """Return how the process ended, such as `exit code 3`; empty if it does not end soon."""
        with anyio.move_on_after(_EXIT_SECONDS):
            code = await self.process.wait()
            return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        return ""

    async def end_reason(self) -> str:
        """Return how the process ended, with advice."""
        found, silent = await self.exit(), "" if self.has_heard else "; does it call run()?"
        advice = self._advice if self.process.returncode else silent
        return f"the server ended with {found}{advice}" if found else await super().end_reason()

    async def close(self) -> None:
        """End the child's input. `drain` reads its further output, as a closed output would break the child."""
        if self._open:
            self._close_sink()
            self._reader.close()

    async def drain(self) -> None:
        """Read and discard the output of the child until it ends."""
        with closing(reader_of(self._source)) as reader, suppress(OSError):
            while await reader.read():
                pass


@asynccontextmanager
async def stdio(
    command: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: int | IO[Any] | None = None,
    limit: int = MAX_MESSAGE,
    grace: float = 2.0,
) -> AsyncGenerator[StdioClientTransport]:
    """Start a server as a child process and connect to it; at the end, kill it with all its own children.

    Args:
        command: The program.
        arguments: Its arguments.
        env: Environment variables for it, beside those of `INHERITED`.
        cwd: The folder to run it in.
        stderr: Receives its error output; by default the stderr of this process.
        limit: The largest message, in bytes.
        grace: Seconds to wait after closing its input, and again after SIGTERM; at most 0.2 if it never wrote anything.

    Raises:
        ConnectionClosed: The program cannot be started.
    """
    known = {name: os.environ[name] for name in INHERITED if name in os.environ}
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
    except (OSError, ValueError) as error:  # no such program, or NUL or an incomplete character in a word
        os.close(source)
        os.close(sink)
        reason = error.strerror if isinstance(error, OSError) else error
        if command.endswith(".py"):
            reason = f"{reason}; to start a Python file, use 'python {command}'"
        raise ConnectionClosed(f"{command} cannot be started: {reason}") from None
    finally:
        os.close(child_input)
        os.close(child_output)
    transport = StdioClientTransport(process, source, sink, limit, "; see its stderr above" if stderr is None else "")
    try:
        yield transport
    finally:
        with anyio.CancelScope(shield=True):
            await transport.close()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(transport.drain)
                await _stop(process, grace if transport.has_heard else min(grace, _SILENT_GRACE_SECONDS))
                tasks.cancel_scope.cancel()
            os.close(source)
            await process.aclose()


async def _stop(process: Process, grace: float) -> None:
    """Wait for the child to end, then terminate and kill it; on POSIX also its own children, which are in its group."""
    for kill in (None, False, True):
        if kill is not None:
            _end(process, kill=kill)
        with anyio.move_on_after(grace):
            await process.wait()
            break
    _end(process, kill=True)


def _end(process: Process, *, kill: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(process.pid, signal.SIGTERM)  # ends the process at once; Windows has no signals and no groups
        else:
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)
