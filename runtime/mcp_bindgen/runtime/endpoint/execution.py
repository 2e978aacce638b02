"""Run the handler of a message: the one way from a message to its answer, whatever it travelled by."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from ..core import jsonrpc, observation
from ..core.errors import INTERNAL_ERROR, INVALID_REQUEST, CapabilityMissing, ProtocolError
from ..core.events import Notified, Requested
from ..core.logs import log
from ..core.observation import Observer
from ..core.peer import Peer
from ..core.revision import Dispatcher, Handler
from ..core.routing import Route
from ..tasks import is_being_cancelled
from ._observed import shown

FindHandler = Callable[[Dispatcher, Route], Handler]
"""Returns the handler of a route of a revision; raises `MethodNotFound` where there is none."""


Answer = tuple[bytes, ProtocolError | None]


def execute(find: FindHandler, peer: Peer, link: Any, event: Requested | Notified) -> Coroutine[Any, Any, Answer]:
    """Run the handler of a message, and answer it.

    What a failure becomes is the same everywhere: an error of the protocol is sent as it is; a capability that the
    other side did not declare is an invalid request; everything else is logged and an internal error, a capability
    that this side itself did not declare included.

    Args:
        find: Finds the handler.
        peer: The protocol's state, which writes the answer.
        link: The way to the other side.
        event: The message.

    Returns:
        What gives the bytes of the answer, empty where none is to be sent, and the error that is in them.
    """
    if observation.current is None:
        return _execute(find, peer, link, event)
    return _observed(observation.current, find, peer, link, event)


async def _observed(
    observer: Observer, find: FindHandler, peer: Peer, link: Any, event: Requested | Notified
) -> Answer:
    """Run a handler while somebody looks on, who is shown what it returned before that is written."""
    with observer.handling(peer.role, link, event) as seen:

        def watched(dispatcher: Dispatcher, route: Route) -> Handler:
            return shown(find(dispatcher, route), seen)

        answered = await _execute(watched, peer, link, event)
        seen.finished(answered[1])
        return answered


async def _execute(find: FindHandler, peer: Peer, link: Any, event: Requested | Notified) -> Answer:
    id_ = event.id if isinstance(event, Requested) else None
    method = event.route.method
    try:
        handler = find(event.dispatcher, event.route)
        answer = handler(link, id_, event.params)
        if inspect.isawaitable(answer):
            answer = await answer
        if id_ is None:
            return b"", None
        if answer is None and not event.route.is_custom:
            raise TypeError(f"the handler of {method.name} returned nothing")
        if type(answer) is not jsonrpc.Written and not event.route.is_custom:
            jsonrpc.check_kind(method, answer, handler)
        asked_by: str | None = getattr(method, "asked_by", None)
        if asked_by is not None and _is_unasked(method, asked_by, event.params, answer):
            raise TypeError(f"the handler of {method.name} returned {type(answer).__name__} without {asked_by!r}")
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
    except Exception:
        log.exception("the handler of %s failed", method.name)
    return _refuse(peer, id_, method.name, ProtocolError(INTERNAL_ERROR, "Internal error"))


def _is_unasked(method: Any, asked_by: str, params: Any, answer: Any) -> bool:
    """Tell whether an answer is one of those that only a member of the params can ask for."""
    return isinstance(answer, method.alternatives) and getattr(params, asked_by, None) is None


def _refuse(peer: Peer, id_: Any, name: str, error: ProtocolError) -> tuple[bytes, ProtocolError]:
    if id_ is None:
        return b"", error
    try:
        return peer.fail(id_, error), error
    except ValueError:
        log.exception("the error that the handler of %s raised cannot be written", name)
        internal = ProtocolError(INTERNAL_ERROR, "Internal error")
        return peer.fail(id_, internal), internal
