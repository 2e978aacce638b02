"""Handlers: bind them to routes, and run them, the one way from a message to its response for every transport."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from ..concurrency import is_being_cancelled
from ..logs import log
from ..protocol import jsonrpc, observation
from ..protocol.capabilities import Side, declared, is_declared
from ..protocol.connection import Connection
from ..protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, CapabilityMissing, MethodNotFound, ProtocolError
from ..protocol.events import Notified, Requested
from ..protocol.methods import RequestMethod
from ..protocol.observation import Observed
from ..protocol.request_scope import Link, RequestScope
from ..protocol.revision import Dispatcher, Revision
from ..protocol.routing import Route, UserHandler, WrongResult

Outcome = tuple[bytes, ProtocolError | None]
"""The bytes of an answer, empty where none is to be sent, and the error that is in them."""


async def handle(link: Link, event: Requested | Notified, seen: Observed | None = None) -> Outcome:
    """Run the handler of a message, and answer it.

    Failures have the same results on every transport: an error of the protocol is sent as it is; a capability that the
    other side did not declare is an invalid request; everything else is logged and an internal error, a capability
    that this side itself did not declare included. Clients without a token read which type a handler returned if it is
    wrong, and nothing about any other failure.

    Args:
        link: The way to the other side, with the endpoint that handles the message.
        event: The message.
        seen: Observation of the handler's result; by default that by the observer, if there is one.
    """
    if seen is None and observation.current is not None:
        with observation.current.handling(link.connection.role, link, event) as seen:
            answered = await handle(link, event, seen)
            seen.finished(answered[1])
            return answered
    connection: Connection = link.connection
    id_, meta = (event.id, event.meta) if isinstance(event, Requested) else (None, None)
    method = event.route.method
    try:
        handler = link.endpoint.handler(event.dispatcher, event.route)
        is_lone = (
            connection.role == "server" and event.dispatcher.revision.era.is_stateless
        )  # with an agreement of its own
        agreed = None if is_lone else link.negotiated
        scope = RequestScope(link, event.origin or link.origin, id_, agreed, meta)
        answer = handler(scope, event.params)
        if inspect.isawaitable(answer):
            answer = await answer
        if seen is not None:
            seen.answered(answer)
        if id_ is None:
            return b"", None
        if type(answer) is not jsonrpc.Written and not event.route.is_custom:
            jsonrpc.check_kind(method, answer, handler)
        if (
            isinstance(method, RequestMethod)
            and method.opt_in is not None
            and method.lacks_opt_in(event.params, answer)
        ):
            problem = f"returned {type(answer).__name__} without {method.opt_in!r}"
            raise WrongResult(f"the handler of {method.name} {problem}", handler)
        return connection.respond(id_, answer), None
    except ProtocolError as error:
        return _refuse(connection, id_, method.name, error)
    except CapabilityMissing as error:
        if error.owner != connection.role:
            return _refuse(connection, id_, method.name, ProtocolError(INVALID_REQUEST, str(error)))
        log.exception("the handler of %s needs what is not declared", method.name)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        log.exception("what the handler of %s was waiting for is cancelled", method.name)
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # also sys.exit() and panics of libraries in Rust, which would end the event loop
        log.exception("the handler of %s failed", method.name)
        told = error.told if isinstance(error, WrongResult) else ""
        if told and connection.role == "server" and (event.origin or link.origin).identity is None:
            return _refuse(connection, id_, method.name, ProtocolError(INTERNAL_ERROR, f"Internal error: {told}"))
    return _refuse(connection, id_, method.name, ProtocolError(INTERNAL_ERROR, "Internal error"))


def _refuse(connection: Connection, id_: Any, name: str, error: ProtocolError) -> tuple[bytes, ProtocolError]:
    if id_ is None:
        return b"", error
    try:
        return connection.fail(id_, error), error
    except (TypeError, ValueError):
        log.exception("the error that the handler of %s raised cannot be written", name)
        internal = ProtocolError(INTERNAL_ERROR, "Internal error")
        return connection.fail(id_, internal), internal


def introduction(target: Side, revision: Revision) -> Any:
    """Return the `Implementation` of a side; the default names this runtime."""
    return target.info if target.info is not None else revision.types.Implementation(name="mcp-bindgen", version="0")


def empty_list(dispatcher: Dispatcher, route: Route, server: Side) -> UserHandler:
    """Return a handler that answers with an empty list, for a feature that a server declares without a list handler.

    Raises:
        MethodNotFound: The method lists nothing, or the server does not declare the feature.
    """
    method = route.method
    capability = method.capabilities.get("client")
    if not isinstance(method, RequestMethod) or method.items is None or capability is None:
        raise MethodNotFound(method.name)
    if not is_declared(declared(server, dispatcher), *capability[1:]):
        raise MethodNotFound(method.name)
    result, items = method.result, method.items

    async def list_nothing(params: object, context: object) -> Any:
        return result(**{items: []})

    return list_nothing
