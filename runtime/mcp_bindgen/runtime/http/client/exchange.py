"""What a client says to an endpoint, and what it hears in return (MCP, "Transports": Streamable HTTP)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import anyio
import httpx2

from ...core.envelope import invalid
from ...core.errors import ConnectionClosed, Refused, SessionLost
from ...core.transport import Outgoing, Oversized
from ..event_stream import EventStream
from .endpoint import EVENTS, JSON, SESSION_ID, Endpoint, kind
from .envelope import adopt, answers
from .stream_reader import Deliver, Listener

log = logging.getLogger("mcp_bindgen")

_AGAIN = (0.05, 0.2, 1.0)  # seconds after which a message is sent again whose connection broke off
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class Conversation:
    """Messages to an endpoint, in a session if the server begins one.

    Args:
        endpoint: Where they go.
        deliver: Takes the messages that come; waits while nobody wants them.

    Attributes:
        forgotten: Whether the server has forgotten the session; only `initialize` begins another one.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver) -> None:
        self.forgotten = False
        self._endpoint = endpoint
        self._deliver = deliver
        self._listener = Listener(endpoint, deliver)
        self._session: str | None = None
        self._headers: Mapping[str, str] = {}  # of what is sent for no message in particular

    async def ask(self, message: Outgoing, id_: int) -> None:
        """Sends a request and passes on what answers it, and what comes before the answer.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server says no, and nothing of the protocol.
            ProtocolError: The answer is too large.
            ConnectionClosed: There is no answer.
        """
        begins = message.begins_session
        if begins:
            self._session, self.forgotten = None, False
        session = self._session_of(message)
        stream = EventStream(self._endpoint.limit)
        async with self._post(message, session, patient=True) as response:
            if begins and response.is_success:
                session = self._session = self._session_in(response)
            if not response.is_success or kind(response) != EVENTS:
                await self._deliver([await self._answer(response, session, id_)])
                return
            if await self._listener.follow(response, stream, id_):
                return
        if message.self_contained or stream.last_id is None:
            raise ConnectionClosed(f"{self._endpoint.place} ended the stream before the answer")
        await anyio.sleep(stream.pause(0))
        try:
            await self._listener.reopen(stream, _headers(message.headers, session), id_)
        except Refused as error:
            self._check(error.status, session)
            raise

    async def tell(self, message: Outgoing) -> None:
        """Sends what is not answered; returns when the server has taken it.

        When the connection breaks off, nobody knows whether it was taken. It is sent again, because somebody may wait
        for it, and nothing of what is said without being asked does harm when it is heard twice.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server says no.
            ConnectionClosed: It cannot be reached.
        """
        for pause in _AGAIN:
            try:
                return await self._tell(message)
            except (SessionLost, Refused):
                raise
            except ConnectionClosed as error:
                log.debug("a message is sent again: %s", error)
            await anyio.sleep(pause)
        return await self._tell(message)

    async def _tell(self, message: Outgoing) -> None:
        session = self._session_of(message)
        async with self._post(message, session) as response:
            body = await self._endpoint.read(response)
            self._check(response.status_code, session)
            if not response.is_success:
                raise Refused(response.status_code, self._endpoint.refusal(response, body))

    async def listen(self, headers: Mapping[str, str]) -> None:
        """Keeps a stream open on which the server can say something by itself, as long as it offers one.

        Args:
            headers: What to send with this and all that is not a message.

        Raises:
            SessionLost: The server has forgotten the session.
            Refused: The server offers no stream.
        """
        self._headers, session = headers, self._session
        stream = EventStream(self._endpoint.limit)
        try:
            await self._listener.reopen(stream, _headers(headers, session), None)
        except Refused as error:
            self._check(error.status, session if stream.heard else None)
            raise

    async def leave(self) -> None:
        """Ends the session, if there is one.

        Raises:
            ConnectionClosed: The server cannot be reached.
        """
        session, self._session = self._session, None
        if session is not None:
            async with self._endpoint.request("DELETE", _headers(self._headers, session)):
                pass

    def _post(
        self, message: Outgoing, session: str | None, *, patient: bool = False
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        headers = _headers(message.headers, session)
        headers["accept"] = f"{JSON}, {EVENTS}"
        headers["content-type"] = JSON
        return self._endpoint.request("POST", headers, message, patient=patient)

    async def _answer(self, response: httpx2.Response, session: str | None, id_: int) -> bytes:
        """The answer that is the body of a response."""
        self._check(response.status_code, session)
        body = await self._endpoint.read(response)
        if isinstance(body, Oversized):
            raise invalid(f"the answer is larger than {body.limit} bytes")
        answer = body if answers(body, id_) else adopt(body, id_)
        if answer is not None:
            return answer
        reason = self._endpoint.refusal(response, body)
        raise ConnectionClosed(f"{reason}, no answer") if response.is_success else Refused(response.status_code, reason)

    # --- the session ------------------------------------------------------------------------------------------

    def _session_of(self, message: Outgoing) -> str | None:
        """The session that a message belongs to."""
        if message.self_contained:
            return None
        if self.forgotten:
            raise SessionLost(f"{self._endpoint.place} has forgotten the session")
        return self._session

    def _session_in(self, response: httpx2.Response) -> str | None:
        """The session that a response begins."""
        session = response.headers.get(SESSION_ID)
        if session is not None and _VISIBLE.fullmatch(session) is None:
            raise ConnectionClosed(f"{self._endpoint.place} named a session in characters that are not allowed")
        return session

    def _check(self, status: int, session: str | None) -> None:
        """Notices by the status of a response that the server has forgotten the session."""
        if status == 404 and session is not None:
            if session == self._session:
                self._session, self.forgotten = None, True
            raise SessionLost(f"{self._endpoint.place} has forgotten the session")


def _headers(headers: Mapping[str, str], session: str | None) -> dict[str, str]:
    named = {name.lower(): value for name, value in headers.items()}
    if session is not None:
        named[SESSION_ID] = session
    return named
