"""Read streams of events to their end, over as many connections as it takes (MCP, "Transports": Resumability)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import httpx2

from mcp_bindgen.runtime.protocol.envelope import read_envelopes
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError, Refused
from mcp_bindgen.runtime.protocol.jsonrpc import peek_answer
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized

from ..event_stream import EventDecoder
from .endpoint import EVENTS, Endpoint, media_type, unpacked

log = logging.getLogger("mcp_bindgen")

Incoming = bytes | Oversized | Lost
Deliver = Callable[[Sequence[Incoming]], Awaitable[None]]

_FAILURES = 5  # in a row, after which an answer is given up
_GRACE = 0.2  # seconds for the server to end a stream after the answer, so that its connection can be used again
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses that may change if one asks again


class StreamReader:
    """Pass on the messages that come in streams.

    Args:
        endpoint: Where they come from.
        deliver: Takes the messages; waits while nobody wants them.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver) -> None:
        self._endpoint = endpoint
        self._deliver = deliver

    async def read(self, response: httpx2.Response, events: EventDecoder, id_: int | None) -> bool:
        """Pass on the messages in a response until it ends or breaks off.

        Args:
            response: The response.
            events: Decodes the stream that it is a part of.
            id_: The request of ours that it answers.

        Returns:
            Whether the answer was there.
        """
        answered = False
        events.connect()
        with anyio.CancelScope() as scope:
            try:
                async for chunk in unpacked(response):
                    messages = [data for type_, data in events.feed(chunk) if type_ == "message" and data]
                    if messages:
                        await self._deliver(messages)
                    if not answered and id_ is not None and any(answers(message, id_) for message in messages):
                        answered = True
                        scope.deadline = anyio.current_time() + _GRACE
            except httpx2.HTTPError as error:
                log.debug("a stream of %s broke off: %r", self._endpoint.place, error)
        return answered

    async def resume(self, events: EventDecoder, headers: Mapping[str, str], id_: int | None) -> None:
        """Ask for a stream whenever it ends: until the answer to a request was there, or else for ever.

        Args:
            events: Decodes the stream.
            headers: Sent each time.
            id_: The request of ours that it answers.

        Raises:
            Refused: The server does not offer it.
            ConnectionClosed: The server failed too often to bring the answer.
        """
        failures = 0
        while True:
            progress = events.progress
            last = {} if events.last_id is None else {"last-event-id": events.last_id}
            try:
                sent = {**headers, "accept": EVENTS, **last}
                async with self._endpoint.request("GET", sent, may_ask=id_ is not None) as response:
                    if response.status_code == 200 and media_type(response) == EVENTS:
                        if await self.read(response, events, id_):
                            return
                    elif response.status_code not in _TRANSIENT:
                        raise await self._endpoint.refused(response)
            except Refused:
                raise
            except ConnectionClosed as error:
                log.debug("a stream cannot be opened: %s", error)
            failures = 0 if events.progress > progress else failures + 1
            if id_ is not None and failures == _FAILURES:
                raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
            await anyio.sleep(events.retry_after(failures))


def answers(message: bytes | Oversized, id_: int) -> bool:
    """Tell whether a message, or one of a batch, answers a request of ours."""
    data = message.head if isinstance(message, Oversized) else message
    quick = peek_answer(data)
    if quick is not None:
        return quick == id_
    try:
        return any(one.is_answer and one.id == id_ for one in read_envelopes(data)[0])
    except ProtocolError:
        return False
