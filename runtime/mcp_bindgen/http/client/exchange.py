"""Requests, notifications and streams of one client, in its session (MCP, "Transports": Streamable HTTP)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import httpx2
from pydantic_core import to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.envelope import invalid_answer, read_envelopes
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError, Refused, SessionLost
from mcp_bindgen.runtime.protocol.jsonrpc import peek_answer
from mcp_bindgen.runtime.protocol.transport import Lost, Outgoing, Oversized

from ..event_stream import EventDecoder
from .bounded import iterate_body, media_type
from .endpoint import EVENTS, JSON, SESSION_ID, Endpoint

Incoming = bytes | Oversized | Lost
Deliver = Callable[[Sequence[Incoming]], Awaitable[None]]

_RESEND_SECONDS = (0.05, 0.2, 1.0)  # before a notification is sent again after a broken connection
_RESEND_STATUSES = (None, 429, 502, 503)  # a broken connection, or a status that another worker may not answer
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_POST = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
_MAX_FAILURES = 5  # in a row, until the response is given up
_GRACE_SECONDS = 0.2  # for the server to end a stream after the response, so that its connection can be used again
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses that a later request may not get


class HttpExchange:
    """Exchange of messages with an endpoint, in a session if the server begins one.

    Args:
        endpoint: The endpoint.
        deliver: Called with the messages that arrive; waits while the receiver is slow.

    Attributes:
        is_forgotten: True if the server has forgotten the session; only a message that begins a session helps then.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver) -> None:
        self.is_forgotten: bool = False
        self._endpoint = endpoint
        self._deliver = deliver
        self._session: str | None = None
        self._headers: Mapping[str, str] = {}  # of requests without a message

    async def ask(self, message: Outgoing, id_: int) -> None:
        """Send a request; deliver its response, and the messages that come before the response.

        Raises:
            SessionLost: The server has forgotten the session, and did not take the request.
            Refused: The server refuses the request without a message of the protocol.
            ProtocolError: The response is too large.
            ConnectionClosed: There is no response.
        """
        if message.begins_session:
            self._session, self.is_forgotten = None, False
        session = self._session_of(message)
        events = self._endpoint.decoder()
        async with self._endpoint.request("POST", _headers(message.headers, session) | _POST, message) as response:
            if message.begins_session and response.is_success:
                session = self._session = self._begun_session(response)
            if not response.is_success or media_type(response) != EVENTS:
                if response.status_code == 404 and session is not None:
                    raise self._forget(session)
                await self._deliver([await self._answer(response, id_)])
                return
            if await self._read(response, events, id_):
                return
        if message.self_contained or events.last_id is None:
            raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
        await anyio.sleep(events.retry_after(0))
        try:
            await self._resume(events, _headers(message.headers, session), id_)
        except Refused as error:
            if error.status == 404 and session is not None:  # the server has taken the request: never send it again
                raise ConnectionClosed(str(self._forget(session))) from None
            raise

    async def tell(self, message: Outgoing) -> None:
        """Send a notification or response; return when the server has taken it.

        A message is sent again if its connection breaks off: the server may wait for it, and taking it twice does no
        harm.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server refuses the message.
            ConnectionClosed: The server cannot be reached, or takes too long.
        """
        with self._endpoint.deadline():
            for pause in (*_RESEND_SECONDS, None):
                session = self._session_of(message)
                try:
                    await self._endpoint.post(message, _headers(message.headers, session) | _POST)
                except ConnectionClosed as error:
                    status = error.status if isinstance(error, Refused) else None
                    if status == 404 and session is not None:
                        raise self._forget(session) from None
                    if pause is None or status not in _RESEND_STATUSES:
                        raise
                    log.debug("a message is sent again: %s", error)
                    await anyio.sleep(pause)
                else:
                    return

    async def listen(self, headers: Mapping[str, str]) -> None:
        """Keep a GET stream open for messages that belong to no request, as long as the server offers one.

        Args:
            headers: Headers of this request, and of further requests without a message.

        Raises:
            Refused: The server offers no stream, or has forgotten the session.
        """
        self._headers, session = headers, self._session
        events = self._endpoint.decoder()
        try:
            await self._resume(events, _headers(headers, session), None)
        except Refused as error:
            if error.status == 404 and session is not None and events.received:
                self._forget(session)
            raise

    async def leave(self) -> None:
        """End the session, if there is one; raises `ConnectionClosed` if the server cannot be reached."""
        session, self._session = self._session, None
        if session is not None:
            async with self._endpoint.request("DELETE", _headers(self._headers, session), may_ask=False):
                pass

    async def _answer(self, response: httpx2.Response, id_: int) -> bytes:
        """Read the response to a request from the body of an HTTP response."""
        body = await self._endpoint.read(response)
        if isinstance(body, Oversized):
            raise invalid_answer(f"the answer is larger than {body.limit} bytes")
        answer = body if _answers(body, id_) else _adopted(body, id_)
        if answer is not None:
            return answer
        reason = self._endpoint.refusal(response, body)
        raise ConnectionClosed(f"{reason}, no answer") if response.is_success else Refused(response.status_code, reason)

    # --- streams ----------------------------------------------------------------------------------------------

    async def _read(self, response: httpx2.Response, events: EventDecoder, id_: int | None) -> bool:
        """Deliver the messages of an event stream until it ends or breaks off.

        Args:
            response: The HTTP response.
            events: Decoder of the stream.
            id_: The request that the stream answers; None for none.

        Returns:
            True if the response to the request has arrived.
        """
        is_answered = False
        events.connect()
        with anyio.CancelScope() as scope:
            try:
                async for chunk in iterate_body(response):
                    messages = [data for type_, data in events.feed(chunk) if type_ == "message" and data]
                    if messages:
                        await self._deliver(messages)
                    if not is_answered and id_ is not None and any(_answers(message, id_) for message in messages):
                        is_answered = True
                        scope.deadline = anyio.current_time() + _GRACE_SECONDS
            except httpx2.HTTPError as error:
                log.debug("a stream of %s broke off: %r", self._endpoint.place, error)
        return is_answered

    async def _resume(self, events: EventDecoder, headers: Mapping[str, str], id_: int | None) -> None:
        """Open a stream whenever it ends (MCP, "Transports": Resumability), until a request is answered, or for ever.

        Args:
            events: Decoder of the stream.
            headers: Headers of each GET.
            id_: The request that the stream answers; None for none.

        Raises:
            Refused: The server does not offer the stream.
            ConnectionClosed: The server failed too often before the response.
        """
        failures = 0
        while True:
            progress = events.progress
            last = {} if events.last_id is None else {"last-event-id": events.last_id}
            try:
                sent = {**headers, "accept": EVENTS, **last}
                async with self._endpoint.request("GET", sent, may_ask=id_ is not None) as response:
                    if response.status_code == 200 and media_type(response) == EVENTS:
                        if await self._read(response, events, id_):
                            return
                    elif response.status_code not in _TRANSIENT:
                        raise await self._endpoint.refused(response)
            except Refused:
                raise
            except ConnectionClosed as error:
                log.debug("a stream cannot be opened: %s", error)
            failures = 0 if events.progress > progress else failures + 1
            if id_ is not None and failures == _MAX_FAILURES:
                raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
            await anyio.sleep(events.retry_after(failures))

    # --- sessions ---------------------------------------------------------------------------------------------

    def _session_of(self, message: Outgoing) -> str | None:
        """Return the session of a message."""
        if message.self_contained:
            return None
        if self.is_forgotten:
            raise SessionLost(f"{self._endpoint.place} has forgotten the session")
        return self._session

    def _begun_session(self, response: httpx2.Response) -> str | None:
        """Return the session that a response begins."""
        session = response.headers.get(SESSION_ID)
        if session is not None and _VISIBLE.fullmatch(session) is None:
            raise ConnectionClosed(f"{self._endpoint.place} named a session in characters that are not allowed")
        return session

    def _forget(self, session: str) -> SessionLost:
        """Note that the server has forgotten a session, unless a new one has begun; return the error for callers."""
        if session == self._session:
            self._session, self.is_forgotten = None, True
        return SessionLost(f"{self._endpoint.place} has forgotten the session")


def _answers(message: bytes | Oversized, id_: int) -> bool:
    """Return True if a message, or a message of a batch, answers a request."""
    data = message.head if isinstance(message, Oversized) else message
    quick = peek_answer(data)
    if quick is not None:
        return quick == id_
    try:
        return any(one.is_answer and one.id == id_ for one in read_envelopes(data)[0])
    except ProtocolError:
        return False


def _adopted(data: bytes, id_: int) -> bytes | None:
    """Return an error response under the id of a request; None if `data` is no error response.

    A server that refuses a request before it reads the body knows no id.
    """
    try:
        (envelope,), is_batch = read_envelopes(data)
    except (ProtocolError, ValueError):
        return None
    if is_batch or envelope.kind != "error" or not is_object(envelope.message["error"]):
        return None
    return to_json({**envelope.message, "id": id_})


def _headers(headers: Mapping[str, str], session: str | None) -> dict[str, str]:
    named = {name.lower(): value for name, value in headers.items()}
    if session is not None:
        named[SESSION_ID] = session
    return named
