"""The end of the stderr of a server, which often has the reason why it died."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self

from mcp_bindgen.runtime.logs import harmless, servers

_MAX_BYTES = 4096
_CHUNK_BYTES = 64 * 1024
_LINES = 3


class StderrTail:
    """Pipe for the stderr of a server, which is logged line by line; its end is kept.

    Args:
        name: The server's name, for the log.

    Attributes:
        writer: The file descriptor to give to the server.
    """

    writer: int

    def __init__(self, name: str) -> None:
        self._name = name
        self._end = b""
        self._rest = b""

    def __enter__(self) -> Self:
        """Open the pipe."""
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pipe."""
        self._loop.remove_reader(self._reader)
        os.close(self._reader)
        os.close(self.writer)

    def after(self, reason: object) -> str:
        """Return `reason` and the last lines of stderr, if any, in one line."""
        self._read()
        lines = [line.strip() for line in self._end.decode("utf-8", "replace").split("\n")]
        said = " | ".join(harmless(line) for line in [line for line in lines if line][-_LINES:])
        return f"{reason}; its stderr ends: {said}" if said else str(reason)

    def _read(self) -> None:
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
        except OSError:
            return
        self._end = (self._end + chunk)[-_MAX_BYTES:]
        *lines, self._rest = (self._rest + chunk)[-_CHUNK_BYTES:].split(b"\n")
        for line in lines:
            servers.info("%s: %s", self._name, line.decode("utf-8", "replace"))
