"""Recorder of forwarded bytes: reads messages in a thread of its own, so that it never delays forwarding."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, Self

from .trace import MAX_MESSAGE_BYTES, Sender, Trace, TracedMessage

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that wait to be read; while more arrive, they are forwarded and not recorded."""

_MAX_DEFERRED_BYTES = 4 * 1024 * 1024
"""Bytes that may wait for a pause in the traffic; with more, reading and forwarding share the processor."""

_PAUSE_SECONDS = 0.02
"""Seconds without traffic after which the bytes that wait are read."""

_LAST_SECONDS = 10.0
"""Seconds that the last messages get after the connection ended."""


class _Chunk(NamedTuple):
    """Bytes of one side.

    Attributes:
        sender: The side that sent them.
        seconds: Time since the trace began.
        data: The bytes.
        lost: Number of bytes of the side that were not recorded before these.
    """

    sender: Sender
    seconds: float
    data: bytes
    lost: int


class Recorder:
    """Recorder of newline-delimited messages.

    Args:
        write: Called with each message, in the thread of the recorder. It ends with the first `OSError`; the bytes are
            forwarded all the same.

    Attributes:
        trace: State of the connection.
        lost_bytes: Number of bytes that were forwarded and not recorded.
        error: The error that ended `write`.
    """

    def __init__(self, write: Callable[[TracedMessage], None]) -> None:
        self.trace = Trace(write)
        self.lost_bytes = 0
        self.error: OSError | None = None
        self._queue: SimpleQueue[_Chunk | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._last_seconds = 0.0
        self._is_over = threading.Event()
        self._lost: dict[Sender, int] = {"client": 0, "server": 0}
        self._rest: dict[Sender, bytes] = {"client": b"", "server": b""}
        self._is_skipping: dict[Sender, bool] = {"client": False, "server": False}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until the last messages are written, within a limit."""
        self._is_over.set()
        self._queue.put(None)
        self._thread.join(_LAST_SECONDS)

    def record(self, sender: Sender, data: bytes) -> None:
        """Take bytes of one side; return at once."""
        with self._lock:
            if self._queued_bytes + len(data) > MAX_QUEUED_BYTES:
                self._lost[sender] += len(data)
                self.lost_bytes += len(data)
                return
            self._queued_bytes += len(data)
            lost, self._lost[sender] = self._lost[sender], 0
        self._last_seconds = self.trace.seconds
        self._queue.put(_Chunk(sender, self._last_seconds, data, lost))

    def _run(self) -> None:
        while (chunk := self._queue.get()) is not None:
            self._wait_for_pause()
            with self._lock:
                self._queued_bytes -= len(chunk.data)
            if self.error is None:
                self._read(chunk)
        for sender in self._rest:
            if self._rest[sender] and self.error is None:
                self._message(sender, self._rest[sender], self.trace.seconds)

    def _wait_for_pause(self) -> None:
        """Wait while traffic flows, so that forwarding has the processor; not once the connection ended."""
        while not self._is_over.is_set() and self._queued_bytes <= _MAX_DEFERRED_BYTES:
            remaining = self._last_seconds + _PAUSE_SECONDS - self.trace.seconds
            if remaining <= 0:
                return
            self._is_over.wait(remaining)

    def _read(self, chunk: _Chunk) -> None:
        """Split bytes into lines; after a gap, skip the rest of a line whose beginning may be missing."""
        sender = chunk.sender
        if chunk.lost:
            self._rest[sender], self._is_skipping[sender] = b"", True
        *lines, rest = chunk.data.split(b"\n")
        for line in lines:
            whole, self._rest[sender] = self._rest[sender] + line, b""
            if self._is_skipping[sender]:
                self._is_skipping[sender] = False
            elif whole.strip():
                self._message(sender, whole, chunk.seconds)
        if len(self._rest[sender]) <= MAX_MESSAGE_BYTES:  # a longer line is reported as too long
            self._rest[sender] += rest

    def _message(self, sender: Sender, text: bytes, seconds: float) -> None:
        try:
            self.trace.record(sender, text, seconds)
        except OSError as error:
            self.error = error
