"""Client transport for Streamable HTTP (MCP 2025-03-26 and later, "Transports": Streamable HTTP).

Each message is a POST. The response to a request is one JSON document or a stream of events. In a session, a broken
stream is resumed, and a GET stream is kept open for messages that belong to no request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio.abc import TaskGroup
from pydantic_core import to_json

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import errors
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.envelope import answered_id, invalid_answer, parse, read_envelopes
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, LoginRequired, ProtocolError, Refused, SessionLost
from mcp_bindgen.runtime.protocol.jsonrpc import peek_answer
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, AskUser, Lost, Outgoing, Oversized, Transport
from mcp_bindgen.runtime.session.targets import Auth

from ..event_stream import MIN_RETRY, EventDecoder
from ..headers import HeaderMirror
from .authorization import ask_at_once
from .bounded import iterate_body, media_type, read_body
from .endpoint import EVENTS, JSON, SESSION_ID, Endpoint, open_endpoint

Incoming = bytes | Oversized | Lost
_RESEND_SECONDS = (0.05, 0.2, 1.0)  # before a notification is sent again after a broken connection
_RESEND_STATUSES = (None, 429, *range(502, 600))  # a broken connection, or a status that another worker may not answer
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_POST = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
_MAX_FAILURES = 5  # in a row, until the response is given up
_GRACE_SECONDS = 0.2  # for the server to end a stream after the response, so that its connection can be used again
_TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)})  # statuses that a later request may not get


def _answers(message: bytes | Oversized, id_: int) -> bool:
    """Return True if a message, or a message of a batch, answers a request, however badly it is formed."""
    data = message.head if isinstance(message, Oversized) else message
    quick = peek_answer(data)
    if quick is not None:
        return quick == id_
    try:
        document = parse(data)
    except ProtocolError:
        return False
    return any(answered_id(one) == id_ for one in (document if is_array(document) else [document]))


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


def _refusal(error: errors.AuthorizationError | ConnectionClosed) -> int:
    """Return the status with which a server refused a request, 401 without a token; 0 if a later one may succeed."""
    if isinstance(error, errors.AuthorizationError):
        return 0 if error.is_temporary else 401
    return error.status if isinstance(error, Refused) and error.status not in _TRANSIENT else 0


def _headers(headers: Mapping[str, str], session: str | None) -> dict[str, str]:
    named = {name.lower(): value for name, value in headers.items()}
    if session is not None:
        named[SESSION_ID] = session
    return named


IN_FLIGHT = 100
"""Requests that are in flight at the same time; further ones wait."""

_MAX_INBOX = 16  # batches that wait to be received
_FAREWELL_SECONDS = 2.0  # for the server to end the session


class ClientTransport(Transport):
    """Client end over HTTP: a bounded queue of messages that have arrived.

    Args:
        endpoint: The endpoint of the server.

    Attributes:
        extensions: Protocol extensions that authorization uses.
    """

    origin: RequestOrigin = RequestOrigin(network="tcp")

    def __init__(self, endpoint: Endpoint) -> None:
        self.extensions: Mapping[str, Any] = endpoint.extensions
        self._inbox = asyncio.Queue[Sequence[Incoming]](_MAX_INBOX)
        self._is_open = True

    async def receive(self) -> Sequence[Incoming]:
        """Return the next messages; an empty sequence once the connection is over."""
        messages = await self._inbox.get() if self._is_open else ()
        if not messages and self._is_open:
            self._inbox.put_nowait(())  # for the next call
        return messages

    async def _deliver(self, messages: Sequence[Incoming]) -> None:
        if self._is_open:
            await self._inbox.put(messages)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ConnectionClosed("the connection is closed")

    def _close_inbox(self) -> bool:
        """End `receive`; return False if the transport was closed before."""
        was_open, self._is_open = self._is_open, False
        if was_open:
            if self._inbox.full():
                self._inbox.get_nowait()
            self._inbox.put_nowait(())
        return was_open


class HttpClientTransport(ClientTransport):
    """Client end of Streamable HTTP, made by `http`.

    Requests are concurrent. The server has a notification or response before later messages are sent.

    Args:
        endpoint: The endpoint of the server.
        tasks: Task group of the requests in flight.
        in_flight: Requests that are in flight at the same time.

    Attributes:
        mirror: Class that makes the headers of messages.
    """

    mirror: Callable[[Any], Any] | None = HeaderMirror

    def __init__(self, endpoint: Endpoint, tasks: TaskGroup, in_flight: int = IN_FLIGHT) -> None:
        super().__init__(endpoint)
        self._endpoint = endpoint
        self._session: str | None = None
        self._is_forgotten = False  # by the server: only a message that begins a session helps then
        self._headers: Mapping[str, str] = {}  # of requests without a message
        self._tasks = tasks
        self._slots = anyio.Semaphore(in_flight, fast_acquire=True)
        self._pending: dict[int, tuple[Outgoing, anyio.TaskHandle[None]]] = {}
        self._listening: anyio.TaskHandle[None] | None = None

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages; wait until the server has taken those that are no requests.

        The failure of a request arrives by `receive`; the failure of another message is logged.

        Raises:
            ConnectionClosed: The transport is closed.
        """
        for data in messages:
            self._check_open()
            message = data if isinstance(data, Outgoing) else Outgoing(data)
            if message.id is not None:
                task = self._tasks.create_task(self._ask(message, message.id))
                self._pending[message.id] = message, task
            elif message.cancels is not None:
                await self._cancel(message, message.cancels)
            else:
                await self._tell(message)

    async def close(self) -> None:
        """Close all connections, and end the session if there is one."""
        if not self._close_inbox():
            return
        for _, task in self._pending.values():
            task.cancel()
        self._stop_listening()
        session, self._session = self._session, None
        if session is None:
            return
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
            try:
                async with self._endpoint.request("DELETE", _headers(self._headers, session), ask_user=None):
                    pass
            except ConnectionClosed as error:
                log.debug("the session was not ended: %s", error)

    async def _ask(self, message: Outgoing, id_: int) -> None:
        """Send a request; deliver its response, or the reason why there is none."""
        try:
            async with self._slots:
                await self._request(message, id_)
        except Exception as error:
            self._note_session()
            await self._deliver([Lost(id_, error)])
        finally:
            self._pending.pop(id_, None)

    async def _tell(self, message: Outgoing) -> None:
        """Send a notification or response."""
        try:
            await self._post(message)
        except Exception as error:
            if isinstance(error, LoginRequired) and message.opens_stream:
                raise
            log.warning("a message was not taken: %s", error)
            self._note_session()
            return
        if message.opens_stream:
            self._stop_listening()
            self._listening = self._tasks.create_task(self._listen(message.headers))

    async def _cancel(self, message: Outgoing, id_: int) -> None:
        """Cancel a request: close its connection, and send the cancellation where closing alone means nothing."""
        request, task = self._pending.get(id_, (message, None))
        if not request.self_contained:
            await self._tell(message)
        if task is not None:
            task.cancel()

    async def _listen(self, headers: Mapping[str, str]) -> None:
        """Keep a GET stream open for messages that belong to no request, as long as the server offers one.

        Args:
            headers: Headers of this request, and of further requests without a message.
        """
        self._headers, session, events = headers, self._session, self._endpoint.decoder()
        try:
            await self._resume(events, _headers(headers, session))
        except Exception as error:
            if isinstance(error, Refused) and error.status == 404 and session is not None and events.received:
                self._forget(session)
            log.debug("the server offers no stream: %s", error)

    def _note_session(self) -> None:
        """Stop listening once the server has forgotten the session; requests still await their own responses."""
        if self._is_forgotten:
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    # --- requests -------------------------------------------------------------------------------------------------

    async def _request(self, message: Outgoing, id_: int) -> None:
        """Send a request; deliver its response, and the messages that come before the response.

        Raises:
            SessionLost: The server has forgotten the session, and did not take the request.
            Refused: The server refuses the request without a message of the protocol.
            ProtocolError: The response is too large.
            ConnectionClosed: There is no response.
        """
        if message.begins_session:
            self._session, self._is_forgotten = None, False
        session = self._session_of(message)
        events = self._endpoint.decoder()
        sent, ask_user = _headers(message.headers, session) | _POST, message.ask_user or ask_at_once
        async with self._endpoint.request("POST", sent, message, ask_user=ask_user) as response:
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
            await self._resume(events, _headers(message.headers, session), id_, ask_user)
        except Refused as error:
            if error.status == 404 and session is not None:  # the server has taken the request: never send it again
                raise ConnectionClosed(str(self._forget(session))) from None
            raise

    async def _post(self, message: Outgoing) -> None:
        """Send a notification or response; return when the server has taken it.

        A message is sent again if its connection breaks off: the server may wait for it, and taking it twice does no
        harm.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server refuses the message.
            ConnectionClosed: The server cannot be reached, or takes too long.
        """
        with self._endpoint.deadline(message.ask_user or ask_at_once) as ask_user:
            for pause in (*_RESEND_SECONDS, None):
                session = self._session_of(message)
                try:
                    await self._endpoint.post(message, _headers(message.headers, session) | _POST, ask_user)
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

    async def _answer(self, response: httpx2.Response, id_: int) -> bytes:
        """Read the response to a request from the body of an HTTP response."""
        body = await read_body(response, self._endpoint.limit)
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

    async def _resume(
        self, events: EventDecoder, headers: Mapping[str, str], id_: int | None = None, ask_user: AskUser | None = None
    ) -> None:
        """Open a stream whenever it ends, until a request is answered, or for ever.

        MCP, "Transports": Resumability and Redelivery. A stream of notifications that was open once is opened again
        after any refusal: without the last event if the server does not resume after it, or after a new login.

        Args:
            events: Decoder of the stream.
            headers: Headers of each GET.
            id_: The request that the stream answers; None for none.
            ask_user: Runs a login that the request needs.

        Raises:
            Refused: The server does not offer the stream, or has forgotten the session.
            AuthorizationError: The stream cannot be authorized.
            ConnectionClosed: The server failed too often before the response.
        """
        failures, was_open = 0, False
        while True:
            progress = events.progress
            last = {} if events.last_id is None else {"last-event-id": events.last_id}
            try:
                sent = {**headers, "accept": EVENTS, **last}
                async with self._endpoint.request("GET", sent, ask_user=ask_user) as response:
                    if response.status_code != 200 or media_type(response) != EVENTS:
                        raise await self._endpoint.refused(response)
                    if not last and (was_open or failures):
                        await self._deliver([Lost(0, ConnectionClosed("notifications may be lost"))])
                    was_open = True
                    if await self._read(response, events, id_):
                        return
            except (errors.AuthorizationError, ConnectionClosed) as error:
                refusal = _refusal(error)
                is_forgotten = refusal == 404 and SESSION_ID in headers
                if refusal and (id_ is not None or is_forgotten or not (was_open or refusal == 401)):
                    raise
                is_lost = bool(last) and refusal not in (0, 401, 403)
                events.last_id = None if is_lost else events.last_id
                tell = log.warning if is_lost or (refusal and not failures) else log.debug
                tell("a stream cannot be %s: %s", "resumed, events are lost" if is_lost else "opened", error)
            failures = 0 if events.progress > progress else failures + 1
            if id_ is not None and failures == _MAX_FAILURES:
                raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
            await anyio.sleep(events.retry_after(failures))

    # --- sessions ---------------------------------------------------------------------------------------------

    def _session_of(self, message: Outgoing) -> str | None:
        """Return the session of a message."""
        if message.self_contained:
            return None
        if self._is_forgotten:
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
            self._session, self._is_forgotten = None, True
        return SessionLost(f"{self._endpoint.place} has forgotten the session")


@asynccontextmanager
async def http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    limit: int = MAX_MESSAGE,
    client: httpx2.AsyncClient | None = None,
    in_flight: int = IN_FLIGHT,
    min_retry: float = MIN_RETRY,
    auth: Auth | None = None,
) -> AsyncGenerator[HttpClientTransport]:
    """Open a Streamable HTTP transport; the first message connects to the server.

    Args:
        url: The server's endpoint, such as `http://localhost:8000/mcp`.
        headers: Headers of each request, for example for authentication.
        timeout: Seconds for a connection, and for the server to take a message that is no request. A response may take
            any time: callers limit it with an option of the request.
        limit: Largest message, in bytes; a larger one is reported as too large.
        client: HTTP client, which stays open; by default a client that is closed with the transport.
        in_flight: Requests in flight at the same time; further ones wait. A subscription counts while it lasts.
        min_retry: Least seconds before a stream is resumed.
        auth: Authorization of the requests, such as `OAuth()`.

    Raises:
        ConnectionClosed: The URL or a header is malformed.
        AuthorizationError: Requests to this URL cannot be authorized.
    """
    opening = open_endpoint(url, client, headers, timeout, limit, in_flight, min_retry, auth)
    async with opening as endpoint, background_tasks() as tasks:
        transport = HttpClientTransport(endpoint, tasks, in_flight)
        try:
            yield transport
        finally:
            await transport.close()
