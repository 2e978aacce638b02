"""HTTP requests to sessions (MCP 2025-03-26 to 2025-11-25, "Transports": Streamable HTTP).

`session_registry` holds the sessions, and a `SessionTransport` carries the messages of each session.
"""

from __future__ import annotations

import time
from functools import partial

import anyio

from mcp_bindgen.runtime.concurrency import scheduled
from mcp_bindgen.runtime.protocol.transport import Outgoing, incoming

from .call import EVENTS, VERSION, Call, EventWriter, check_version
from .errors import RETRY_SOON, HttpError, refused
from .intake import Intake, ParsedBody
from .session_registry import OpenSession, SessionRegistry
from .session_transport import GONE
from .streams import Stream, stream_events

SESSION = b"mcp-session-id"


class HttpSessions:
    """HTTP requests to the sessions of an endpoint.

    Args:
        registry: The sessions.
        intake: Reads and parses bodies.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        quick: Seconds to wait for an answer that fits into a plain response, without a stream.
        retry: Milliseconds after which clients reconnect to a broken stream.
    """

    def __init__(
        self,
        registry: SessionRegistry,
        intake: Intake,
        keep_alive: float = 15.0,
        quick: float = 0.05,
        retry: int = 1000,
    ) -> None:
        self.registry: SessionRegistry = registry
        self._intake = intake
        self._limits, self._dispatchers = registry.limits, registry.service.dispatchers
        self._keep_alive, self._quick, self._retry = keep_alive, quick, retry
        self._stateful = [name for name, one in self._dispatchers.items() if not one.revision.era.is_stateless]
        self._versions = {None, *(name.encode() for name in self._stateful)}

    async def find(self, call: Call) -> OpenSession:
        """Return the session of a request.

        The session keeps the negotiated revision, also if the header names another served revision.

        Raises:
            HttpError: The request names no session, a session of another user, or a revision without sessions.
        """
        if call.headers.get(VERSION) not in self._versions:
            check_version(call, self._stateful)
        id_ = call.headers.get(SESSION)
        if id_ is None:
            raise refused(400, "the header Mcp-Session-Id is missing; a session begins with initialize")
        return await self.registry.find(id_.decode("latin-1").strip(" \t"), call.principal)

    async def delete(self, call: Call) -> None:
        """Respond to a DELETE: end the session. Raises `HttpError`."""
        await self.registry.end(await self.find(call))
        await call.respond(204)

    # --- POST -------------------------------------------------------------------------------------------------

    async def post(self, call: Call, body: bytes, session: OpenSession | None) -> None:
        """Respond to a POST: give its messages to the session, and send their answers. Raises `HttpError`.

        Args:
            call: The request; its body is JSON.
            body: Its body.
            session: Its session, which was found before the body was read; None if it names none.
        """
        parsed = self._intake.parse(call, body)
        if self._intake.auth is not None:
            await self._intake.authorize(call, parsed, None if session is None else session.revision.name)
        is_new = session is None and parsed.is_initialize
        if is_new:
            check_version(call, self._dispatchers)
            session = await self.registry.begin(call.principal)
        elif session is None or session.transport.state in GONE:
            session = await self.find(call)
        if parsed.is_batch:
            parsed.check_batch(session.revision)
        session.requests += 1
        try:
            if parsed.ids:
                await self._respond(call, session, parsed, is_new)
            else:
                await self.registry.forward(session, parsed)
                session.transport.arrive(incoming(parsed.body, call.origin))
                await session.transport.settle(parsed.cancelled)
                if parsed.is_initialized:
                    await self.registry.confirm(session)
                await call.respond(202)
        finally:
            session.requests -= 1
            session.seen = time.monotonic()
            if is_new and session.snapshot() is None:
                await self.registry.end(session)

    async def _respond(self, call: Call, session: OpenSession, parsed: ParsedBody, is_new: bool) -> None:
        """Respond to a POST with requests: with JSON if the answer comes at once, else with a stream."""
        if parsed.answered or parsed.cancelled:
            await self.registry.forward(session, parsed)
        transport = session.transport
        stream = transport.expect(parsed.ids)
        headers = [(SESSION, session.id.encode())] if is_new else []
        writer = None
        try:
            with stream.reading():
                try:
                    transport.arrive(incoming(parsed.body, call.origin))
                except HttpError:
                    await transport.settle(parsed.ids)
                    raise
                if parsed.cancelled:
                    await transport.settle(parsed.cancelled)
                with anyio.move_on_after(self._quick):
                    await stream.first()
                answer = stream.sole_answer()
                if answer is not None:
                    if is_new and session.snapshot() is None:
                        headers = []
                    status = 200
                    if isinstance(answer, Outgoing) and answer.refused:
                        status, headers = 429, [*headers, RETRY_SOON]
                    with anyio.move_on_after(self._limits.write_timeout):
                        await call.respond(status, answer, headers=headers)
                else:
                    await stream.persist()
                    writer = EventWriter(call, self._limits.write_timeout, self._keep_alive, headers)
                    await self._stream(writer, session, stream, 0)
        finally:
            if stream.pending and not stream.is_read and not stream.persisted:  # the client cannot resume the stream
                await transport.abandon(stream, session.revision)
        if writer is not None:
            await writer.end()

    async def _stream(self, writer: EventWriter, session: OpenSession, stream: Stream, after: int) -> None:
        await writer.open()
        retry = self._retry if stream.persisted and session.transport.supports_stream_polling else None
        await stream_events(writer, stream, after, retry)

    # --- GET --------------------------------------------------------------------------------------------------

    async def get(self, call: Call) -> None:
        """Respond to a GET: open the stream that belongs to no request, or resume a stream after `Last-Event-ID`.

        Raises:
            HttpError: The request is refused.
        """
        if not call.accepts(EVENTS):
            raise refused(406, "the answer is text/event-stream; the client must accept it")
        session = await self.find(call)
        async with self.registry.reading(session, call.header(b"last-event-id")) as (stream, after):
            session.transport.budget.take()
            session.requests += 1
            try:
                writer = EventWriter(call, self._limits.write_timeout, self._keep_alive)
                with stream.reading(), scheduled(call.session_expires_at(), partial(stream.leave, None)):
                    if self.registry.retry is not None:
                        stream.leave(self.registry.retry)
                    await self._stream(writer, session, stream, after)
                await writer.end()
            finally:
                session.requests -= 1
                session.seen = time.monotonic()
                session.transport.budget.add(-1)
