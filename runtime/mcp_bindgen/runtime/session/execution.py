"""Execution of handlers: the one way from a message to its response, for every transport."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ..concurrency import is_being_cancelled
from ..logs import log
from ..protocol import jsonrpc, observation
from ..protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, CapabilityMissing, ProtocolError
from ..protocol.events import Notified, Requested
from ..protocol.methods import Request
from ..protocol.observation import Observed
from ..protocol.peer import Peer
from ..protocol.request_scope import Handler, Link, RequestScope
from ..protocol.revision import Dispatcher
from ..protocol.routing import Route, WrongResult

FindHandler = Callable[[Dispatcher, Route], Handler]
"""Returns the handler of a route of a revision; raises `MethodNotFound` where there is none."""

Answer = tuple[bytes, ProtocolError | None]
"""The bytes of an answer, empty where none is to be sent, and the error that is in them."""


async def execute(
    find: FindHandler, peer: Peer, link: Link, event: Requested | Notified, seen: Observed | None = None
) -> Answer:
    """Run the handler of a message, and answer it.

    Failures have the same results on every transport: an error of the protocol is sent as it is; a capability that the
    other side did not declare is an invalid request; everything else is logged and an internal error, a capability
    that this side itself did not declare included. Clients without a token read which type a handler returned if it is
    wrong, and nothing about any other failure.

    Args:
        find: Finds the handler.
        peer: The protocol's state, which writes the answer.
        link: The way to the other side.
        event: The message.
        seen: Observation of the handler's result; by default that by the observer, if there is one.
    """
    if seen is None and observation.current is not None:
        with observation.current.handling(peer.role, link, event) as seen:
            answered = await execute(find, peer, link, event, seen)
            seen.finished(answered[1])
            return answered
    id_ = event.id if isinstance(event, Requested) else None
    method = event.route.method
    try:
        handler = find(event.dispatcher, event.route)
        scope = RequestScope(link, event.origin or link.origin, id_, link.negotiated)
        answer = handler(scope, event.params)
        if inspect.isawaitable(answer):
            answer = await answer
        if seen is not None:
            seen.answered(answer)
        if id_ is None:
            return b"", None
        if type(answer) is not jsonrpc.Written and not event.route.is_custom:
            jsonrpc.check_kind(method, answer, handler)
        if isinstance(method, Request) and method.asked_by is not None and method.is_unasked(event.params, answer):
            said = f"returned {type(answer).__name__} without {method.asked_by!r}"
            raise WrongResult(f"the handler of {method.name} {said}", handler)
        return peer.respond(id_, answer), None
    except ProtocolError as error:
        return _refuse(peer, id_, method.name, error)
    except CapabilityMissing as error:
        if error.owner != peer.role:
            return _refuse(peer, id_, method.name, ProtocolError(INVALID_REQUEST, str(error)))
        log.exception("the handler of %s needs what is not declared", method.name)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        log.exception("what the handler of %s was waiting for is cancelled", method.name)
    except WrongResult as error:
        log.exception("the handler of %s failed", method.name)
        if error.told and peer.role == "server" and (event.origin or link.origin).identity is None:
            return _refuse(peer, id_, method.name, ProtocolError(INTERNAL_ERROR, f"Internal error: {error.told}"))
    except Exception:
        log.exception("the handler of %s failed", method.name)
    return _refuse(peer, id_, method.name, ProtocolError(INTERNAL_ERROR, "Internal error"))


def _refuse(peer: Peer, id_: Any, name: str, error: ProtocolError) -> tuple[bytes, ProtocolError]:
    if id_ is None:
        return b"", error
    try:
        return peer.fail(id_, error), error
    except ValueError:
        log.exception("the error that the handler of %s raised cannot be written", name)
        internal = ProtocolError(INTERNAL_ERROR, "Internal error")
        return peer.fail(id_, internal), internal
