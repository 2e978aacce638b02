"""The stateful side of Streamable HTTP on a server (MCP 2025-03-26 to 2025-11-25, "Transports": Streamable HTTP).

Here are the rules of HTTP. `registry` has the sessions, each of which is served over a `session_transport`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

from ...core import jsonrpc
from ...core.errors import INVALID_REQUEST, ProtocolError
from ...core.transport import MAX_MESSAGE
from ...endpoint.server import Service
from .call import EVENTS, JSON, Call
from .envelope import Posted, posted
from .event_store.base import EventStore
from .session_registry import LATER, OpenSession, Refusal, Registry, snapshot
from .session_transport import Room
from .streams import STANDING, Stream, finish, place_of, pour

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"


class HttpSessions:
    """The sessions of an endpoint.

    Args:
        service: The servers.
        store: Keeps events, so that clients can come back to a stream; a durable one keeps sessions, too.
        max_sessions: How many sessions may be open at once.
        max_streams: How many streams there may be at once: requests that are handled, and connections that listen.
        idle: Seconds without a request, a message or an open connection after which a session ends.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        limit: The bytes of messages of a session that may wait to be taken.
        quick: Seconds to wait for an answer that needs no stream, but fits into a plain response.
        retry: Milliseconds after which clients shall come back to a stream that broke.
        patience: Seconds that a client may take to read what it is sent.
    """

    def __init__(
        self,
        service: Service,
        *,
        store: EventStore | None = None,
        max_sessions: int = 1000,
        max_streams: int = 10_000,
        idle: float = 1800.0,
        keep_alive: float = 15.0,
        limit: int = MAX_MESSAGE,
        quick: float = 0.05,
        retry: int = 1000,
        patience: float = 30.0,
    ) -> None:
        self._revisions = list(service.dispatchers)
        self._store = store
        self._keep_alive = keep_alive
        self._quick = quick
        self._retry = retry
        self._patience = patience
        self._room = Room(max_streams)
        self._registry = Registry(service, store, most=max_sessions, room=self._room, limit=limit, idle=idle)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The time in which sessions live; it may be left out, then they end one by one.

        All end with it, but those in a durable store can be taken up later.
        """
        async with self._registry.running():
            yield

    def leave(self) -> None:
        """Hangs up on all clients and lets none in; call it when the process is about to stop.

        Who comes back later, here or to another process with the same store, finds the session and its streams again.
        """
        self._registry.leave()

    # --- requests ---------------------------------------------------------------------------------------------

    async def post(self, call: Call, body: bytes) -> None:
        """Answers a POST: takes the message, or the batch, and gives what answers it.

        Args:
            call: The request; its body is JSON.
            body: Its body.
        """
        await self._answer(call, self._post(call, body))

    async def get(self, call: Call) -> None:
        """Answers a GET: opens the standing stream, or goes on with any stream after the event `Last-Event-ID`."""
        await self._answer(call, self._get(call))

    async def delete(self, call: Call) -> None:
        """Answers a DELETE: ends the session."""
        await self._answer(call, self._delete(call))

    async def _answer(self, call: Call, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Refusal as refusal:
            body = jsonrpc.failure(None, refusal.error)
            await call.respond(refusal.status, body, headers=refusal.headers)

    def _check_version(self, call: Call) -> None:
        revision = call.header(VERSION)
        if revision is not None and revision not in self._revisions:
            reason = f"MCP-Protocol-Version: this revision is not served; supported are {', '.join(self._revisions)}"
            raise Refusal(400, ProtocolError(INVALID_REQUEST, reason, {"supported": self._revisions}))

    async def _find(self, call: Call) -> OpenSession:
        id_ = call.header(SESSION)
        if id_ is None:
            raise Refusal(400, "the header Mcp-Session-Id is missing; a session begins with initialize")
        return await self._registry.find(id_, call.principal)

    async def _delete(self, call: Call) -> None:
        self._check_version(call)
        await self._registry.end(await self._find(call))
        await call.respond(204)

    # --- POST -------------------------------------------------------------------------------------------------

    async def _post(self, call: Call, body: bytes) -> None:
        if not _accepts(call, JSON) or not _accepts(call, EVENTS):
            raise Refusal(406, "answers are application/json or text/event-stream; the client must accept both")
        self._check_version(call)
        try:
            said = posted(body)
        except ProtocolError as error:
            raise Refusal(400, error) from None
        new = said.introduces and call.header(SESSION) is None
        session = self._registry.begin(call.principal) if new else await self._find(call)
        revision = session.session.negotiated.dispatcher.revision
        if said.batch and not revision.batches:
            raise Refusal(400, f"batches are not part of revision {revision}")
        try:
            with session.visit():
                if said.ids:
                    await self._converse(call, session, body, said, new)
                else:
                    _hand_over(session, body)
                    await session.transport.settle(said.cancelled)
                    await call.respond(202)
        finally:
            if new and snapshot(session.session) is None:
                await self._registry.end(session)

    async def _converse(self, call: Call, session: OpenSession, body: bytes, said: Posted, new: bool) -> None:
        """Answers a POST that holds requests: at once as JSON if that is possible, else as a stream."""
        try:
            stream = session.transport.expect(said.ids)
        except ProtocolError as error:
            raise Refusal(400, error) from None
        if stream is None:
            raise Refusal(503, "too many streams are open", LATER)
        headers = [(SESSION, session.id.encode())] if new else []
        with stream.reading():
            try:
                _hand_over(session, body)
            except Refusal:
                await session.transport.settle(said.ids)
                raise
            await session.transport.settle(said.cancelled)
            with anyio.move_on_after(self._quick):
                await stream.first()
            answer = stream.sole_answer()
            if answer is not None:
                introduced = not new or snapshot(session.session) is not None
                with anyio.move_on_after(self._patience):
                    await call.respond(200, answer, headers=headers if introduced else ())
            else:
                await stream.keep()
                await call.open_stream(headers)
                await self._pour(call, session, stream, 0)
        if answer is None:
            await finish(call)

    async def _pour(self, call: Call, session: OpenSession, stream: Stream, after: int) -> None:
        retry = self._retry if stream.kept and session.transport.polls else None
        await pour(call, stream, after, retry=retry, keep_alive=self._keep_alive, patience=self._patience)

    # --- GET --------------------------------------------------------------------------------------------------

    async def _get(self, call: Call) -> None:
        if not _accepts(call, EVENTS):
            raise Refusal(406, "the answer is text/event-stream; the client must accept it")
        self._check_version(call)
        session = await self._find(call)
        last_event = call.header(b"last-event-id")
        if last_event is None:
            stream = session.transport.standing
            after = await self._unread(session, stream)
            if stream.is_read:
                raise Refusal(409, "the session has a standing stream already; Last-Event-ID takes it over")
        else:
            stream, after = await self._resumed(session, last_event)
        if self._room.free <= 0:
            raise Refusal(503, "too many streams are open", LATER)
        self._room.free -= 1
        try:
            with session.visit():
                with stream.reading():
                    await call.open_stream()
                    await self._pour(call, session, stream, after)
                await finish(call)
        finally:
            self._room.free += 1

    async def _unread(self, session: OpenSession, stream: Stream) -> int:
        """The number of the event after which nothing was given to the client."""
        span = await self._store.span(session.key, stream.name) if self._store is not None and stream.kept else None
        return stream.given if span is None else max(stream.given, span[0] - 1)

    async def _resumed(self, session: OpenSession, id_: str) -> tuple[Stream, int]:
        """The stream of an event, and the number of that event."""
        place = place_of(id_)
        span = await self._store.span(session.key, place[0]) if self._store is not None and place is not None else None
        if place is None or span is None or not span[0] - 1 <= place[1] <= span[1]:
            raise Refusal(400, "Last-Event-ID: this event is not known, or what came after it is no longer held")
        name, number = place
        stream = session.transport.standing if name == STANDING else session.transport.streams.get(name)
        if stream is None:  # it is over
            stream = Stream(session.key, name, store=self._store, last=span[1], over=True, kept=True)
        return stream, number


def _hand_over(session: OpenSession, body: bytes) -> None:
    if not session.transport.arrive(body):
        raise Refusal(503, "too many messages wait in this session", LATER)


def _accepts(call: Call, kind: bytes) -> bool:
    """Whether a client takes this kind of answer (RFC 9110, section 12.5.1); it must say so."""
    wanted = {"*/*", kind.decode(), kind.decode().partition("/")[0] + "/*"}
    for part in (call.header(b"accept") or "").lower().split(","):
        name, *parameters = [word.strip() for word in part.split(";")]
        if name in wanted and not any(word.replace(" ", "") in ("q=0", "q=0.0", "q=0.00") for word in parameters):
            return True
    return False
