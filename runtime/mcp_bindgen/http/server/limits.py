"""Define how much an HTTP endpoint takes of its clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    """How much an HTTP endpoint takes of its clients, of each and of all together.

    What is beyond a limit is refused with 413 or 408 (a message), or with 429 and `Retry-After` (too much at once).
    What one principal takes of all is limited where it is known who sends a request.

    Attributes:
        message: Bytes of a message.
        values: Members and items of all objects and arrays in a message: what they cost does not show in the bytes.
        bodies: Bytes of the larger messages, beyond 64 KiB each, that arrive or are being answered. Where they are
            more, those that began to arrive first are given up.
        bodies_of_principal: Those of one principal; of these, the first are given up.
        arrival: Seconds for a message to arrive.
        unread: Seconds for a client to read what it is sent, before it is cut off.
        unasked: Seconds for a client whose queue is full, before it is cut off, when a message comes that belongs to
            no request: a broadcast waits for nobody longer than that.
        requests: Requests at work at once that belong to no session, subscriptions included.
        requests_of_principal: Those of one principal.
        sessions: Open sessions of stateful revisions.
        sessions_of_principal: Those of one principal.
        handshake: Seconds for the client of a new session to say that it is initialized. Where there is no room for
            another session, the oldest one goes that did not say so yet.
        idle: Seconds without traffic after which a session ends.
        streams: Streams of all sessions: requests at work, and connections that listen.
        streams_of_session: Those of one session.
        streams_of_principal: Those of all sessions of one principal.
        queued: Bytes of messages that wait for clients to read them, on all streams of sessions. Where they are more,
            a stream on which something waits takes nothing else, and who sends on it waits.
        queued_of_principal: Those of one principal.
        abandoned: Seconds after which a request of a session is cancelled whose client hung up and does not come back
            for the answer; one that cannot come back is not waited for.
    """

    message: int = 4 * 1024 * 1024
    values: int = 100_000
    bodies: int = 256 * 1024 * 1024
    bodies_of_principal: int = 64 * 1024 * 1024
    arrival: float = 30.0
    unread: float = 30.0
    unasked: float = 0.5
    requests: int = 10_000
    requests_of_principal: int = 1000
    sessions: int = 1000
    sessions_of_principal: int = 100
    handshake: float = 10.0
    idle: float = 1800.0
    streams: int = 10_000
    streams_of_session: int = 256
    streams_of_principal: int = 1000
    queued: int = 256 * 1024 * 1024
    queued_of_principal: int = 64 * 1024 * 1024
    abandoned: float = 300.0


LIMITS = HttpLimits()
"""How much an endpoint takes unless it is told otherwise."""
