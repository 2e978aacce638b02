"""The era of the handshake, up to 2025-11-25: what the runtime itself says and answers there (MCP, "Lifecycle")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..core import jsonrpc
from ..core.errors import MethodNotFound, UnsupportedRevision
from ..core.events import State
from ..core.methods import untyped
from ..core.revision import CANCELLED, INITIALIZE, INITIALIZED, PING, PROGRESS, SET_LEVEL, Vocabulary, module
from ..endpoint.handlers import Handler, bound, declared, introduction, is_handled

if TYPE_CHECKING:
    from ..core.methods import Method
    from ..core.routing import Route
    from ..endpoint.client import Client
    from ..endpoint.server import Server
    from ..endpoint.session import Session

VERSION_HEADER = "MCP-Protocol-Version"

_POLLING_SINCE = "2025-11-25"


def polls(revision: str) -> bool:
    """Whether clients of a revision take an event without data, and come back to a stream that the server closed."""
    return revision >= _POLLING_SINCE


# --- servers --------------------------------------------------------------------------------------------------


def handler(server: Server, words: Vocabulary, route: Route[Any]) -> Handler:
    """What `server` has to say to the messages of `route`; raises `MethodNotFound` where that is nothing."""
    name = route.method.name
    if not is_handled(route, server):
        ours = _OURS.get(name)
        if ours is None:
            raise MethodNotFound(name)
        return lambda session, id_, params: ours(server, session, params)
    work = bound(route, server)
    context = module(words.bindings, "server").Context
    if name == INITIALIZE:
        return lambda session, id_, params: _initialize_by(work, session, params, context(session, id_, params))
    return lambda session, id_, params: work(params, context(session, id_, params))


def _initialize(server: Server, session: Any, params: Any) -> Any:
    _introduce(session, params)
    words = session.terms.vocabulary
    session.terms.declared["server"] = declared(server, words)
    wire = {
        "protocolVersion": words.revision,
        "capabilities": session.terms.declared["server"],
        "serverInfo": introduction(server, words),
    }
    if server.instructions is not None:
        wire["instructions"] = server.instructions
    session.peer.negotiated()
    return words.methods[INITIALIZE].result.model_validate(wire)


async def _initialize_by(work: Callable[..., Any], session: Any, params: Any, context: Any) -> Any:
    """A server that answers `initialize` itself."""
    _introduce(session, params)
    answer = await work(params, context)
    session.terms.declared["server"] = answer.capabilities.model_dump()
    session.peer.negotiated()
    return answer


def _introduce(session: Session, params: Any) -> None:
    session.terms.vocabulary = session.peer.vocabulary
    session.terms.declared["client"] = params.capabilities.model_dump()
    session.terms.peer_info = params.client_info


def _set_level(server: Server, session: Any, params: Any) -> Any:
    session.terms.log_level = params.level
    return {}


def _nothing(server: Server, session: Any, params: Any) -> Any:
    return {}


_OURS: dict[str, Callable[[Any, Any, Any], Any]] = {
    INITIALIZE: _initialize,
    INITIALIZED: _nothing,
    PING: _nothing,
    CANCELLED: _nothing,
    PROGRESS: _nothing,
    SET_LEVEL: _set_level,
}


def memory(session: Session) -> dict[str, Any] | None:
    """What a server's session must know to go on in another process, as JSON; `None` before the client has said it."""
    terms = session.terms
    if session.peer.state not in (State.NEGOTIATED, State.READY):
        return None
    return {
        "revision": terms.vocabulary.revision,
        "clientInfo": terms.peer_info.model_dump(),
        "capabilities": terms.declared["client"],
        "logLevel": terms.log_level,
    }


def revive(session: Session, memory: Mapping[str, Any], offers: Mapping[str, Any], first_id: int) -> None:
    """Makes a new session go on where another one was.

    Args:
        session: The session, to which nothing was said yet.
        memory: What `memory` gave.
        offers: What the server declares.
        first_id: The first id of the server's own requests: late answers to those of the former process mean nothing.

    Raises:
        KeyError: The revision is not served.
    """
    session.peer.resume(memory["revision"], first_id)
    words = session.terms.vocabulary = session.peer.vocabulary
    session.terms.peer_info = module(words.bindings, "types").Implementation.model_validate(memory["clientInfo"])
    session.terms.log_level = memory["logLevel"]
    session.terms.declared["client"] = memory["capabilities"]
    session.terms.declared["server"] = offers


# --- clients --------------------------------------------------------------------------------------------------


async def introduce(client: Client, session: Session) -> None:
    """Does the handshake of a client.

    Raises:
        UnsupportedRevision: The server answers with a revision that this client does not speak.
    """
    answer = await offer(client, session)
    if answer["protocolVersion"] != client.revision:
        raise UnsupportedRevision(client.revision, answer["protocolVersion"])
    await accept(client, session, answer)


async def offer(client: Client, session: Session) -> dict[str, Any]:
    """Sends `initialize`, and gives the answer in wire form: it may be in another revision.

    Raises:
        ProtocolError: The server refuses, or does not say which revision it speaks.
    """
    words = session.peer.vocabulary
    session.terms.declared["client"] = declared(client, words)
    method: Any = words.methods[INITIALIZE]
    wire = {
        "protocolVersion": words.revision,
        "capabilities": session.terms.declared["client"],
        "clientInfo": introduction(client, words).model_dump(),
    }
    answer = await session.request(untyped(method), jsonrpc.typed_params(method, wire), client.options)
    if not isinstance(answer.get("protocolVersion"), str):
        raise jsonrpc.invalid("the result of initialize names no protocolVersion")
    return answer


async def accept(client: Client, session: Session, wire: dict[str, Any]) -> None:
    """Takes the answer to `initialize`, whose revision is that of the client, and ends the handshake.

    Raises:
        ProtocolError: It is no such answer.
    """
    words = session.peer.vocabulary
    answer = jsonrpc.typed_result(cast(Any, words.methods[INITIALIZE]), wire)
    session.terms.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.terms.peer_info = client.server_info = answer.server_info
    client.instructions = answer.instructions
    session.peer.negotiated()
    session.headers = lambda method, params: _headers(words)
    initialized: Any = words.methods[INITIALIZED]
    await session.notify(initialized, None)


def _headers(words: Vocabulary) -> Mapping[str, str]:
    return {VERSION_HEADER: words.revision}


def answers_by_default(method: Method) -> bool:
    """Whether a client takes a message that it has no handler for."""
    return method.kind == "notification" or method.name == PING
