"""Batches of messages (MCP 2025-03-26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import jsonrpc
from .envelope import BatchReply, RequestId, invalid
from .errors import INTERNAL_ERROR, ProtocolError
from .events import Event, Rejected

_MAX_REPLY_BYTES = 64 * 1024 * 1024  # of the answers to one batch; clients take no larger message


@dataclass(slots=True, eq=False)
class Batch:
    """The answers to a batch; they leave together, once the whole batch is read and answered."""

    _is_read: bool = False
    _ids: set[RequestId] = field(default_factory=set[RequestId])
    _owed: set[RequestId] = field(default_factory=set[RequestId])
    _parts: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0

    def read(self, messages: Sequence[Any], receive: Callable[[Any], list[Event]]) -> Iterator[Event]:
        """Yield the events of each message; the next message is read when the caller asks for its events.

        Args:
            messages: The parsed messages.
            receive: Returns the events of one message.
        """
        for place, message in enumerate(messages, 1):
            events = receive(message)
            self._is_read = place == len(messages)
            for event in events:
                if isinstance(event, Rejected) and event.reply:
                    self._parts.append(event.reply)
                    event.reply = b""
                    if event.id is not None:
                        self._ids.add(event.id)
                yield event
        reply = self._reply()
        if reply:
            yield Rejected(invalid("parts of a batch"), reply)  # or nothing: the last message may need no answer

    def has(self, id_: RequestId) -> bool:
        """Return whether a request of this batch has an id."""
        return id_ in self._ids

    def expect(self, id_: RequestId) -> None:
        """Note a request that has to be answered."""
        self._ids.add(id_)
        self._owed.add(id_)

    def answered(self, id_: RequestId, answer: bytes) -> bytes:
        """Note that a request is answered, or with an empty answer that it is dropped.

        Returns:
            The answers to the batch, if this was the last one. An answer for which there is no room is an error there.
        """
        self._owed.discard(id_)
        if self._size + len(answer) > _MAX_REPLY_BYTES:
            reason = f"Internal error: the answers to the batch are larger than {_MAX_REPLY_BYTES} bytes; ask for less"
            answer = jsonrpc.failure(id_, ProtocolError(INTERNAL_ERROR, reason))
        self._size += len(answer)
        if answer:
            self._parts.append(answer)
        return self._reply()

    def _reply(self) -> bytes:
        if not self._parts or self._owed or not self._is_read:
            return b""
        reply = BatchReply(b"[" + b",".join(self._parts) + b"]")
        reply.ids = self._ids
        self._parts.clear()
        return reply
