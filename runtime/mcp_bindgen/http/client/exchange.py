"""Exchange messages with an endpoint, in its sessions (MCP, "Transports": Streamable HTTP)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import anyio
import httpx2
from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.envelope import invalid_answer, read_envelopes
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError, Refused, SessionLost
from mcp_bindgen.runtime.protocol.transport import Outgoing, Oversized

from .endpoint import EVENTS, JSON, SESSION_ID, Endpoint, media_type
from .stream_reader import Deliver, StreamReader, answers

log = logging.getLogger("mcp_bindgen")

_AGAIN = (0.05, 0.2, 1.0)  # seconds after which a message is sent again whose connection broke off
_NOT_NOW = (None, 429, 502, 503)  # the connection broke off, or a status that another worker may not answer
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_POST = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}


class HttpExchange:
    """Send messages to an endpoint and pass on what answers them, in a session if the server begins one.

    Args:
        endpoint: Where messages go.
        deliver: Takes the messages that come; waits while nobody wants them.

    Attributes:
        forgotten: Whether the server has forgotten the session; only a message that begins a session begins another.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver) -> None:
        self.forgotten = False
        self._endpoint = endpoint
        self._deliver = deliver
        self._reader = StreamReader(endpoint, deliver)
        self._session: str | None = None
        self._headers: Mapping[str, str] = {}  # of what is sent for no message in particular

    async def ask(self, message: Outgoing, id_: int) -> None:
        """Send a request; pass on what answers it, and what comes before the answer.

        Raises:
            SessionLost: The server has forgotten the session, and so did not take the request.
            Refused: The server says no, and nothing of the protocol.
            ProtocolError: The answer is too large.
            ConnectionClosed: There is no answer.
        """
        if message.begins_session:
            self._session, self.forgotten = None, False
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
            if await self._reader.read(response, events, id_):
                return
        if message.self_contained or events.last_id is None:
            raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
        await anyio.sleep(events.retry_after(0))
        try:
            await self._reader.resume(events, _headers(message.headers, session), id_)
        except Refused as error:
            if error.status == 404 and session is not None:  # the request was taken: it must not be sent again
                raise ConnectionClosed(str(self._forget(session))) from None
            raise

    async def tell(self, message: Outgoing) -> None:
        """Send what is not answered; return when the server has taken it.

        When the connection breaks off, nobody knows whether it was taken. It is sent again, because somebody may wait
        for it, and nothing of what is said without being asked does harm when it is heard twice.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server says no.
            ConnectionClosed: It cannot be reached, or takes too long.
        """
        with self._endpoint.deadline():
            for pause in (*_AGAIN, None):
                session = self._session_of(message)
                try:
                    await self._endpoint.post(message, _headers(message.headers, session) | _POST)
                except ConnectionClosed as error:
                    status = error.status if isinstance(error, Refused) else None
                    if status == 404 and session is not None:
                        raise self._forget(session) from None
                    if pause is None or status not in _NOT_NOW:
                        raise
                    log.debug("a message is sent again: %s", error)
                    await anyio.sleep(pause)
                else:
                    return

    async def listen(self, headers: Mapping[str, str]) -> None:
        """Keep a GET stream open for messages that the server sends unasked, as long as it offers one.

        Args:
            headers: What to send with this and all that is not a message.

        Raises:
            Refused: The server offers no stream, or has forgotten the session.
        """
        self._headers, session = headers, self._session
        events = self._endpoint.decoder()
        try:
            await self._reader.resume(events, _headers(headers, session), None)
        except Refused as error:
            if error.status == 404 and session is not None and events.received:
                self._forget(session)
            raise

    async def leave(self) -> None:
        """End the session, if there is one.

        Raises:
            ConnectionClosed: The server cannot be reached.
        """
        session, self._session = self._session, None
        if session is not None:
            async with self._endpoint.request("DELETE", _headers(self._headers, session), may_ask=False):
                pass

    async def _answer(self, response: httpx2.Response, id_: int) -> bytes:
        """Read the answer that is the body of a response."""
        body = await self._endpoint.read(response)
        if isinstance(body, Oversized):
            raise invalid_answer(f"the answer is larger than {body.limit} bytes")
        answer = body if answers(body, id_) else _adopt(body, id_)
        if answer is not None:
            return answer
        reason = self._endpoint.refusal(response, body)
        raise ConnectionClosed(f"{reason}, no answer") if response.is_success else Refused(response.status_code, reason)

    def _session_of(self, message: Outgoing) -> str | None:
        """Return the session that a message belongs to."""
        if message.self_contained:
            return None
        if self.forgotten:
            raise SessionLost(f"{self._endpoint.place} has forgotten the session")
        return self._session

    def _begun_session(self, response: httpx2.Response) -> str | None:
        """Return the session that a response begins."""
        session = response.headers.get(SESSION_ID)
        if session is not None and _VISIBLE.fullmatch(session) is None:
            raise ConnectionClosed(f"{self._endpoint.place} named a session in characters that are not allowed")
        return session

    def _forget(self, session: str) -> SessionLost:
        """Note that the server has forgotten a session, unless another one has begun; return the error that says so."""
        if session == self._session:
            self._session, self.forgotten = None, True
        return SessionLost(f"{self._endpoint.place} has forgotten the session")


def _adopt(data: bytes, id_: int) -> bytes | None:
    """Put the id of a request into an error that answers it, whatever id it has.

    Servers that refuse a request before they read it have no id to put there.
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
