"""Streams that a client hears to their end, over as many connections as it takes (MCP, "Transports": Resumability)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import httpx2

from ...core.errors import ConnectionClosed, Refused
from ...core.transport import Lost, Oversized
from ..event_stream import EventStream
from .endpoint import EVENTS, Endpoint, kind
from .envelope import answers

log = logging.getLogger("mcp_bindgen")

Incoming = bytes | Oversized | Lost
Deliver = Callable[[Sequence[Incoming]], Awaitable[None]]

_FAILURES = 5  # in a row, after which an answer is given up
_GRACE = 0.2  # seconds for the server to end a stream after the answer, so that its connection can be used again
_NOT_NOW = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses that may change if one asks again


class Listener:
    """Passes on what comes in streams.

    Args:
        endpoint: Where they come from.
        deliver: Takes the messages; waits while nobody wants them.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver) -> None:
        self._endpoint = endpoint
        self._deliver = deliver

    async def follow(self, response: httpx2.Response, stream: EventStream, id_: int | None) -> bool:
        """Passes on what comes in a response until it ends or breaks off.

        Args:
            response: The response.
            stream: The stream that it is a part of.
            id_: The request of ours that it answers.

        Returns:
            Whether the answer was there.
        """
        answered = False
        stream.begin()
        with anyio.CancelScope() as scope:
            try:
                async for chunk in response.aiter_bytes():
                    messages = stream.feed(chunk)
                    if messages:
                        await self._deliver(messages)
                    if not answered and id_ is not None and any(answers(message, id_) for message in messages):
                        answered = True
                        scope.deadline = anyio.current_time() + _GRACE
            except httpx2.HTTPError as error:
                log.debug("a stream of %s broke off: %r", self._endpoint.place, error)
        return answered

    async def reopen(self, stream: EventStream, headers: Mapping[str, str], id_: int | None) -> None:
        """Asks for a stream whenever it ends: until the answer to a request was there, or else for ever.

        Args:
            stream: The stream.
            headers: Sent each time.
            id_: The request of ours that it answers.

        Raises:
            Refused: The server does not offer it.
            ConnectionClosed: The server failed too often to bring the answer.
        """
        failures = 0
        while True:
            heard = stream.heard
            more = {**headers, "accept": EVENTS}
            if stream.last_id is not None:
                more["last-event-id"] = stream.last_id
            try:
                async with self._endpoint.request("GET", more, patient=True) as response:
                    if response.status_code == 200 and kind(response) == EVENTS:
                        if await self.follow(response, stream, id_):
                            return
                    elif response.status_code not in _NOT_NOW:
                        raise Refused(response.status_code, self._endpoint.refusal(response))
            except Refused:
                raise
            except ConnectionClosed as error:
                log.debug("a stream cannot be opened: %s", error)
            failures = 0 if stream.heard > heard else failures + 1
            if id_ is not None and failures == _FAILURES:
                raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
            await anyio.sleep(stream.pause(failures))
