"""The end of the stderr of a server, which often has the reason why it died."""

from __future__ import annotations

import asyncio
import os
import re
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

from mcp_bindgen.runtime.logs import harmless, servers

_MAX_BYTES = 16 * 1024
_CHUNK_BYTES = 64 * 1024
_LINES = 3

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"^(?: *\| )?([^\s|+].*)$", re.MULTILINE)
"""The line of a traceback of Python that has the error; in groups of exceptions, lines begin with a bar."""
_NODE = re.compile(r"^Node\.js v\d", re.MULTILINE)
_THROWN = re.compile(r"^((?:Uncaught )?[\w.$]*(?:Error|Exception)\b.*)$", re.MULTILINE)
"""The first line of an error of Node."""
_NPM = re.compile(r"^npm (?:error|ERR!) (?!code |errno |syscall )(.*)$", re.MULTILINE)
_PLACE = re.compile(r'^[\s|]*File "([^"\n]+)", line (\d+)', re.MULTILINE)


def last_words(stderr: str) -> str:
    """Return the end of the stderr of a server in one line: the error of a traceback if it ends with one."""
    if _TRACEBACK in stderr:
        trace = stderr.rpartition(_TRACEBACK)[2]
        error, places = _RAISED.search(trace), _PLACE.findall(trace)
        if error is not None:
            file, line = places[-1] if places else ("", "")
            return harmless(error[1] + (f" ({Path(file).name}, line {line})" if file else ""))
    elif (error := _NPM.search(stderr) or (_NODE.search(stderr) and _THROWN.search(stderr))) is not None:
        return harmless(error[1])
    lines = [line for part in stderr.split("\n") if (line := part.strip())]
    return " | ".join(harmless(line) for line, _ in groupby(lines[-_LINES:]))


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

    def text(self) -> str:
        """Return the end of what the server has written."""
        self._read()
        return self._end.decode("utf-8", "replace")

    def _read(self) -> None:
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
        except OSError:
            return
        self._end = (self._end + chunk)[-_MAX_BYTES:]
        *lines, self._rest = (self._rest + chunk)[-_CHUNK_BYTES:].split(b"\n")
        for line in lines:
            servers.info("%s: %s", self._name, line.decode("utf-8", "replace"))
