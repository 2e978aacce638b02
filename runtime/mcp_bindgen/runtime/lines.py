"""Newline-delimited messages out of chunks of bytes (MCP stdio transport), with a limit on their size."""

from __future__ import annotations

from .transport import MAX_MESSAGE, Oversized


class Lines:
    """Collects chunks and gives the complete lines in them.

    Args:
        limit: The largest line in bytes; a larger one is skipped and `Oversized` stands in for it.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """The lines that `chunk` completes, without their line ends; blank ones are left out."""
        *complete, rest = chunk.split(b"\n")
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
        if self._size > self.limit:
            self._skipping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _take(self) -> bytes | Oversized:
        message = Oversized(self.limit) if self._skipping else b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return message
