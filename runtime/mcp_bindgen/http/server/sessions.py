"""Serve Streamable HTTP with sessions (MCP 2025-03-26 to 2025-11-25, "Transports": Streamable HTTP).

Here are the rules of HTTP. `_session_registry` has the sessions, each of which is served over a `_session_transport`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import anyio

from mcp_bindgen.runtime.concurrency import scheduled
from mcp_bindgen.runtime.protocol.transport import Outgoing, incoming

from .call import EVENTS, RETRY_SOON, Call, HttpError, check_version, refused
from .envelope import Posted, posted
from .session_registry import OpenSession, SessionRegistry
from .streams import Stream, finish, pour

SESSION = b"mcp-session-id"


@dataclass(eq=False)
class HttpSessions:
    """HTTP requests to the sessions of an endpoint.

    Args:
        registry: The sessions.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        quick: Seconds to wait for an answer that needs no stream, but fits into a plain response.
        retry: Milliseconds after which clients shall come back to a stream that broke.
    """

    registry: SessionRegistry
    keep_alive: float = 15.0
    quick: float = 0.05
    retry: int = 1000

    def __post_init__(self) -> None:
        self.service, self.limits = self.registry.service, self.registry.limits
        dispatchers = self.service.dispatchers
        self._stateful = [name for name, one in dispatchers.items() if not one.revision.era.is_stateless]

    # --- requests ---------------------------------------------------------------------------------------------

    async def find(self, call: Call) -> OpenSession:
        """Return the session that a request belongs to.

        The session keeps the revision that was negotiated, also if the header names another one that is served.

        Raises:
            HttpError: It names none, or somebody else's, or a revision that is not served in sessions.
        """
        check_version(call, self._stateful)
        id_ = call.header(SESSION)
        if id_ is None:
            raise refused(400, "the header Mcp-Session-Id is missing; a session begins with initialize")
        return await self.registry.find(id_, call.principal)

    async def delete(self, call: Call) -> None:
        """Respond to a DELETE: end the session. Raises `HttpError`."""
        await self.registry.end(await self.find(call))
        await call.respond(204)

    # --- POST -------------------------------------------------------------------------------------------------

    async def post(self, call: Call, body: bytes, session: OpenSession | None) -> None:
        """Respond to a POST: take the message, or the batch, and send what answers it. Raises `HttpError`.

        Args:
            call: The request; its body is JSON.
            body: Its body.
            session: Its session, which was found before the body was read; `None` if it names none.
        """
        said = posted(call, body, self.service.limits.batch_members)
        revision = None if session is None else session.revision.name
        await self.service.authorize_all(call.identity, revision, said.operations or [("an answer", None)])
        new = session is None and said.introduces
        if new:
            check_version(call, self.service.dispatchers)
            session = await self.registry.begin(call.principal)
        elif session is None or session.ending:
            session = await self.find(call)
        if said.batch and not session.revision.batches:
            raise refused(400, f"batches are not part of revision {session.revision}")
        try:
            with session.in_use():
                if said.ids:
                    await self._converse(call, session, body, said, new)
                else:
                    await self.registry.forward(session, said, body)
                    session.transport.arrive(incoming(body, call.origin))
                    await session.transport.settle(said.cancelled)
                    if said.confirms:
                        await self.registry.confirm(session)
                    await call.respond(202)
        finally:
            if new and session.snapshot() is None:
                await self.registry.end(session)

    async def _converse(self, call: Call, session: OpenSession, body: bytes, said: Posted, new: bool) -> None:
        """Respond to a POST that holds requests: at once as JSON if that is possible, else as a stream."""
        if said.answered or said.cancelled:
            await self.registry.forward(session, said, body)
        stream = session.transport.expect(said.ids)
        headers = [(SESSION, session.id.encode())] if new else []
        try:
            with stream.reading():
                try:
                    session.transport.arrive(incoming(body, call.origin))
                except HttpError:
                    await session.transport.settle(said.ids)
                    raise
                await session.transport.settle(said.cancelled)
                with anyio.move_on_after(self.quick):
                    await stream.first()
                answer = stream.sole_answer()
                if answer is not None:
                    introduced = not new or session.snapshot() is not None
                    status, headers = 200, headers if introduced else []
                    if isinstance(answer, Outgoing) and answer.refused:
                        status, headers = 429, [*headers, RETRY_SOON]
                    with anyio.move_on_after(self.limits.unread):
                        await call.respond(status, answer, headers=headers)
                else:
                    await stream.keep()
                    await call.open_stream(headers)
                    await self._pour(call, session, stream, 0)
        finally:
            if not stream.is_read and not stream.kept:  # nobody can get the answer any longer
                await session.transport.abandon(stream, session.revision)
        if answer is None:
            await finish(call)

    async def _pour(self, call: Call, session: OpenSession, stream: Stream, after: int) -> None:
        retry = self.retry if stream.kept and session.transport.supports_stream_polling else None
        await pour(call, stream, after, retry=retry, keep_alive=self.keep_alive, patience=self.limits.unread)

    # --- GET --------------------------------------------------------------------------------------------------

    async def get(self, call: Call) -> None:
        """Respond to a GET: open the standing stream, or resume any stream after the event `Last-Event-ID`.

        Raises:
            HttpError: It is refused.
        """
        if not call.accepts(EVENTS):
            raise refused(406, "the answer is text/event-stream; the client must accept it")
        session = await self.find(call)
        async with self.registry.reading(session, call.header(b"last-event-id")) as (stream, after):
            await self._read(call, session, stream, after)

    async def _read(self, call: Call, session: OpenSession, stream: Stream, after: int) -> None:
        """Let a client read a stream from an event on."""
        session.transport.budget.take()
        try:
            with session.in_use():
                session_expires_at = None if call.identity is None else call.identity.session_expires_at
                with stream.reading(), scheduled(session_expires_at, partial(stream.leave, None)):
                    await call.open_stream()
                    if self.registry.retry is not None:
                        stream.leave(self.registry.retry)
                    await self._pour(call, session, stream, after)
                await finish(call)
        finally:
            session.transport.budget.give_back()
