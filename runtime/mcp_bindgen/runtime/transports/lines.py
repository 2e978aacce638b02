"""Newline-delimited messages out of chunks of bytes (MCP stdio transport), with a limit on their size."""

from __future__ import annotations

from ..protocol.transport import MAX_MESSAGE, Oversized

_HEAD = 256


class Lines:
    """Collects chunks and gives the complete lines in them.

    Args:
        limit: The largest line in bytes; a larger one is skipped and `Oversized` stands in for it.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping: Oversized | None = None

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Return the lines that `chunk` completes, without their line ends; blank ones are left out."""
        *complete, rest = chunk.split(b"\n")
        if complete and not self._size and len(chunk) <= self.limit:  # nothing to join, nothing too large
            self._add(rest)
            return [line for line in complete if line and not line.isspace()]
        found: list[bytes | Oversized] = []
        for line in complete:
            self._add(line)
            message = self._take()
            if isinstance(message, Oversized) or message.strip():
                found.append(message)
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._skipping is None and part:
            self._parts.append(part)
            if self._size > self.limit:
                head = b"".join(part[:_HEAD] for part in self._parts[:_HEAD])[:_HEAD]
                self._skipping = Oversized(self.limit, head)
                self._parts.clear()

    def _take(self) -> bytes | Oversized:
        message = self._skipping or b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, None
        return message
