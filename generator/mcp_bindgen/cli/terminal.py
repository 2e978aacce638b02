"""Output to stdout and stderr: text from files and servers cannot control a terminal, forge lines or set colours."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Self, TextIO

from mcp_bindgen.spec.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

_PIPE: dict[str, Any] = {"width": 10_000, "force_terminal": False, "no_color": True}
_MAX_LINE_BYTES = 64 * 1024
_SECONDS_FOR_LAST_LINES = 1.0  # of a server that has ended; a program that it started may keep the pipe open
_COLOUR = re.compile("(\x1b\\[[0-9;]+m)")


class PrintableStream:
    """Text stream that escapes, as JSON does, the characters that a terminal obeys or hides.

    Args:
        stream: The stream to write to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def rich_proxied_file(self) -> TextIO:
        """The stream without escapes: rich looks for this name, and writes its colours there."""
        return _unguarded(self._stream)

    def write(self, text: str) -> int:
        """Write text of one or more lines."""
        self._stream.write(printable(text.replace("\r\n", "\n"), keep="\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of the stream."""
        return getattr(self._stream, name)


def guard_streams() -> None:
    """Make stdout and stderr printable, also for logging, warnings, tracebacks, prompts and errors of usage."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, PrintableStream):
            setattr(sys, name, PrintableStream(stream))


def _unguarded(stream: TextIO) -> TextIO:
    """Return the stream below the escaping stream, and below the streams of a status line of rich."""
    inner: TextIO | None = getattr(stream, "rich_proxied_file", None)
    return stream if inner is None else _unguarded(inner)


def say(line: str = "", *, err: bool = False) -> None:
    """Write one line; line breaks in it are escaped."""
    write(f"{printable(line)}\n", err=err)


def write(text: str, *, err: bool = False) -> None:
    """Write text of several lines to stdout or stderr."""
    guard_streams()
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


def write_patch(patch: bytes) -> None:
    """Write a patch to stdout: escaped on a terminal, else byte for byte, so that it can be applied."""
    stream = _unguarded(sys.stdout)
    if stream.isatty() or not hasattr(stream, "buffer"):
        write(patch.decode("utf-8", "replace"))
        return
    stream.flush()
    stream.buffer.write(patch)
    stream.flush()


def write_report(text: str, *, err: bool = False) -> None:
    """Write a report to stdout or stderr; on a terminal its colours remain."""
    stream = sys.stderr if err else sys.stdout
    for number, part in enumerate(_COLOUR.split(text) if stream.isatty() else [text]):
        if number % 2:
            _unguarded(stream).write(part)
        else:
            write(part, err=err)


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr; in a pipe lines are plain and never folded. `NO_COLOR` is honoured.

    Where a pipe is asked to look like a terminal, with `FORCE_COLOR`, it still is one: programs read it. The console
    obeys no markup and writes without escapes: give it printable text only.
    """
    from rich.console import Console  # takes time to load

    stream = _unguarded(sys.stderr if stderr else sys.stdout)
    pipe: dict[str, Any] = {} if stream.isatty() else _PIPE
    return Console(file=stream, highlight=False, markup=False, emoji=False, **pipe)


@contextmanager
def shown_lines() -> Generator[IO[bytes]]:
    """Open a pipe for the stderr of a server; each line that arrives is shown on stderr."""
    reader, writer = os.pipe()

    def show() -> None:
        with os.fdopen(reader, "rb") as lines:
            for line in iter(lambda: lines.readline(_MAX_LINE_BYTES), b""):
                say(line.decode("utf-8", "replace").rstrip("\r\n"), err=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        with os.fdopen(writer, "wb") as pipe:
            yield pipe
    finally:
        thread.join(_SECONDS_FOR_LAST_LINES)


class StatusLine:
    """Status line on a terminal; nothing in a pipe.

    Args:
        words: The text of the line.
    """

    def __init__(self, words: str) -> None:
        self._status: Status = console(stderr=True).status(_text(words))

    def __enter__(self) -> Self:
        """Show the line."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        self.stop()

    def update(self, words: str) -> None:
        """Change the text."""
        self._status.update(_text(words))

    def start(self) -> None:
        """Show the line."""
        self._status.start()
        guard_streams()  # rich has put streams in place that obey escape sequences

    def stop(self) -> None:
        """Remove the line."""
        self._status.stop()


def _text(words: str) -> Text:
    """Return one line for rich, which would read markup in a string."""
    from rich.text import Text

    return Text(printable(words))
