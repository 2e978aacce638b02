"""Recorder of forwarded bytes: reads messages in a thread of its own, so that it never delays forwarding."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple, Protocol, Self

from .trace import MAX_MESSAGE_BYTES, Sender, Trace, TracedMessage

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that wait to be read; while more arrive, they are forwarded and not recorded."""

_MAX_DEFERRED_BYTES = 4 * 1024 * 1024
"""Bytes that may wait for a pause in the traffic; with more, reading and forwarding share the processor."""

_PAUSE_SECONDS = 0.02
"""Seconds without traffic after which the bytes that wait are read."""

_LAST_SECONDS = 60.0
"""Seconds that the last messages get after the connection ended."""


class Channel(Protocol):
    """Bytes of one side, from which messages are read in the thread of the recorder."""

    def read(self, data: bytes, seconds: float) -> None:
        """Record the messages that the next bytes complete."""
        ...

    def skip(self) -> None:
        """Go on with the next whole message, because bytes are missing."""
        ...

    def close(self, seconds: float) -> None:
        """Record the last message, which nothing but the end completes."""
        ...


class Lines:
    """Channel of newline-delimited messages."""

    def __init__(self, trace: Trace, sender: Sender) -> None:
        self._trace = trace
        self._sender: Sender = sender
        self._rest = b""
        self._is_skipping = False

    def read(self, data: bytes, seconds: float) -> None:
        """Split bytes into lines; after a gap, skip the rest of a line whose beginning may be missing."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, self._rest = self._rest + line, b""
            if self._is_skipping:
                self._is_skipping = False
            elif whole.strip():
                self._trace.record(self._sender, whole, seconds)
        if len(self._rest) <= MAX_MESSAGE_BYTES:  # a longer line is reported as too long
            self._rest += rest

    def skip(self) -> None:
        """Forget the beginning of a line."""
        self._rest, self._is_skipping = b"", True

    def close(self, seconds: float) -> None:
        """Record a last line without an end."""
        if self._rest:
            self._trace.record(self._sender, self._rest, seconds)


class _Chunk(NamedTuple):
    """Bytes of a channel.

    Attributes:
        channel: The channel.
        seconds: Time since the start.
        data: The bytes; `None` for the end of the channel.
        is_after_gap: True if bytes before these were not recorded.
    """

    channel: Channel
    seconds: float
    data: bytes | None
    is_after_gap: bool


class Recorder:
    """Recorder of a connection, or of the connections through a proxy.

    Args:
        write: Called with each message, in the thread of the recorder. It ends with the first `OSError`; the bytes are
            forwarded all the same.

    Attributes:
        revision: The revision of the newest message; empty before one is known.
        count: Number of messages.
        violation_count: Number of violations.
        lost_bytes: Number of bytes that were forwarded and not recorded.
        error: The error that ended `write`.
    """

    def __init__(self, write: Callable[[TracedMessage], None]) -> None:
        self.revision = ""
        self.count = 0
        self.violation_count = 0
        self.lost_bytes = 0
        self.error: OSError | None = None
        self._write = write
        self._started = time.monotonic()
        self._queue: SimpleQueue[_Chunk | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._last_seconds = 0.0
        self._is_over = threading.Event()
        self._gaps: set[Channel] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Wait until the last messages are written, within a limit."""
        self._is_over.set()
        self._queue.put(None)
        self._thread.join(_LAST_SECONDS)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return round(time.monotonic() - self._started, 6)

    def write(self, message: TracedMessage) -> None:
        """Count a message and write it; the `write` of each `Trace` of this recorder."""
        self.count += message.kind != "http"
        self.violation_count += len(message.violations)
        self.revision = message.revision or self.revision
        self._write(message)

    def record(self, channel: Channel, data: bytes) -> None:
        """Take bytes of a channel; return at once."""
        with self._lock:
            if self._queued_bytes + len(data) > MAX_QUEUED_BYTES:
                self._gaps.add(channel)
                self.lost_bytes += len(data)
                return
            self._queued_bytes += len(data)
        self._last_seconds = self.seconds
        self._put(channel, self._last_seconds, data)

    def end(self, channel: Channel) -> None:
        """Take the end of a channel."""
        self._put(channel, self.seconds, None)

    def _put(self, channel: Channel, seconds: float, data: bytes | None) -> None:
        with self._lock:
            is_after_gap = channel in self._gaps
            self._gaps.discard(channel)
        self._queue.put(_Chunk(channel, seconds, data, is_after_gap))

    def _run(self) -> None:
        while (chunk := self._queue.get()) is not None:
            self._wait_for_pause()
            with self._lock:
                self._queued_bytes -= len(chunk.data or b"")
            if self.error is None:
                self._read(chunk)

    def _wait_for_pause(self) -> None:
        """Wait while traffic flows, so that forwarding has the processor; not once the connection ended."""
        while not self._is_over.is_set() and self._queued_bytes <= _MAX_DEFERRED_BYTES:
            remaining = self._last_seconds + _PAUSE_SECONDS - self.seconds
            if remaining <= 0:
                return
            self._is_over.wait(remaining)

    def _read(self, chunk: _Chunk) -> None:
        try:
            if chunk.is_after_gap:
                chunk.channel.skip()
            if chunk.data is None:
                chunk.channel.close(chunk.seconds)
            else:
                chunk.channel.read(chunk.data, chunk.seconds)
        except OSError as error:
            self.error = error
