"""The era of the handshake, up to 2025-11-25 (MCP, "Lifecycle")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic_core import to_json

from ..model.json_types import is_object
from ..protocol import jsonrpc
from ..protocol.capabilities import declared
from ..protocol.envelope import Envelope, invalid, invalid_answer
from ..protocol.errors import INVALID_PARAMS, MethodNotFound, NotInitialized, ProtocolError, UnsupportedRevision
from ..protocol.methods import Method, Notification, untyped
from ..protocol.revision import Connection, Dispatcher, Handler, Revision
from ..protocol.routing import Route
from ..protocol.transitions import State
from ..protocol.uris import followed_key, lineage
from .lifecycle import CANCELLED, INITIALIZE, INITIALIZED, PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE, UPDATED
from .operations import check_followed
from .sides import bound, empty_list, introduction

VERSION_HEADER = "MCP-Protocol-Version"

_MAX_INTRODUCTION_BYTES = 256 * 1024  # clientInfo and capabilities, which stay with a session


class Handshake:
    """Revisions in which the client introduces itself once, and the connection remembers it."""

    initial = State.NEW
    is_stateless = False

    # --- messages ---------------------------------------------------------------------------------------------

    def peek(self, data: bytes, ours: Mapping[str, Dispatcher], current: Dispatcher) -> Dispatcher | None:
        """Return the revision of the connection: messages do not name theirs."""
        return current

    def select(
        self, envelope: Envelope, ours: Mapping[str, Dispatcher], current: Dispatcher, supported: Sequence[str]
    ) -> Dispatcher:
        """Return the revision of the connection."""
        return current

    def is_open(self, connection: Connection, method: str) -> bool:
        """Tell whether the handshake is over, and this is not another one."""
        return connection.state is State.READY and method != INITIALIZE

    def admit(self, connection: Connection, dispatcher: Dispatcher, envelope: Envelope, in_batch: bool) -> Dispatcher:
        """Let a message in if the handshake allows it; `initialize` decides the revision.

        Raises:
            ProtocolError: It comes too early, or twice.
        """
        if envelope.kind == "notification":
            is_early = connection.role == "server" and connection.state is State.NEW
            if is_early and envelope.method != CANCELLED:
                raise NotInitialized
            return dispatcher
        if envelope.method == INITIALIZE and connection.role == "server":
            if connection.state is not State.NEW or connection.is_introducing or in_batch:
                raise invalid("initialize comes once, first and alone")
            connection.initialize_request_id = envelope.id
            wanted = envelope.params.get("protocolVersion") if is_object(envelope.params) else None
            connection.dispatcher = connection.best(self, wanted)
            return connection.dispatcher
        if connection.state is not State.READY and envelope.method != PING:
            raise NotInitialized
        return dispatcher

    def accepts(self, dispatcher: Dispatcher, params: Any) -> bool:
        """Tell that nothing is missing: what a request may count on was said before."""
        return True

    def complete(self, dispatcher: Dispatcher, envelope: Envelope, params: Any) -> Any:
        """Return the params as they are."""
        return params

    def noticed(self, connection: Connection, method: Method) -> None:
        """Note that the client has taken the answer to its handshake."""
        if method.name == INITIALIZED and connection.role == "server" and connection.state is State.NEGOTIATED:
            connection.confirmed()

    def can_cancel(self, method: Method, *, by_sender: bool) -> bool:
        """Tell whether a request can be taken back: by its sender, and not the handshake itself."""
        return by_sender and method.name != INITIALIZE

    # --- servers ----------------------------------------------------------------------------------------------

    def handler(self, server: Any, dispatcher: Dispatcher, route: Route, supported: Sequence[str]) -> Handler:
        """Return what answers the messages of a route: the server's own handler, else the runtime's.

        Raises:
            MethodNotFound: There is neither.
        """
        name = route.method.name
        if not dispatcher.is_handled(route, server):
            default = _DEFAULTS.get(name)
            if default is None and route.method.kind == "request":
                nothing = empty_list(dispatcher, route, server)
                if nothing is None:
                    raise MethodNotFound(name)
                return lambda scope, params: nothing()
            return lambda scope, params: (default or _nothing)(server, scope.link, params)
        work, context = bound(dispatcher, route, server), server.context
        if name == INITIALIZE:
            return lambda scope, params: _initialize_by(work, scope.link, params, context(scope, params))
        if name in _NOTED:
            return lambda scope, params: _note(name, work, scope.link, params, context(scope, params))
        return lambda scope, params: work(params, context(scope, params))

    def is_followed(self, link: Any, method: Notification[Any], params: Any) -> bool:
        """Tell whether the client has subscribed, where something is for subscribers."""
        followed: set[str] | None = link.negotiated.subscriptions
        if method.name != UPDATED or followed is None or followed_key(params.uri) in followed:
            return True
        return not followed.isdisjoint(lineage(params.uri)) and link.allows_resource(params.uri)

    def snapshot(self, session: Any) -> dict[str, Any] | None:
        """Return what a session must know to go on in another process; `None` before the client has said it."""
        agreed = session.negotiated
        if session.peer.state not in (State.NEGOTIATED, State.READY):
            return None
        return {
            "revision": agreed.dispatcher.revision.name,
            "clientInfo": agreed.peer_info.model_dump(),
            "capabilities": agreed.declared["client"],
            "logLevel": agreed.log_level,
            "subscriptions": sorted(agreed.subscriptions or ()),
        }

    def restore(self, session: Any, snapshot: Mapping[str, Any], offers: Mapping[str, Any], first_id: int) -> None:
        """Make a new session go on where another one was.

        Args:
            session: The session, to which nothing was said yet.
            snapshot: What `snapshot` gave.
            offers: What the server declares.
            first_id: The first id of the server's own requests: late answers to those of the former process mean
                nothing.
        """
        session.peer.resume(snapshot["revision"], first_id)
        agreed = session.negotiated
        agreed.dispatcher = session.peer.dispatcher
        agreed.peer_info = agreed.dispatcher.revision.types.Implementation.model_validate(snapshot["clientInfo"])
        agreed.declared["client"] = snapshot["capabilities"]
        agreed.declared["server"] = offers
        self.update(session, snapshot)

    def update(self, session: Any, snapshot: Mapping[str, Any]) -> None:
        """Take over what the client has said since: its log level, and what it follows."""
        agreed = session.negotiated
        agreed.log_level = snapshot["logLevel"]
        agreed.subscriptions = set(snapshot.get("subscriptions", ()))  # records of older versions have none

    # --- clients ----------------------------------------------------------------------------------------------

    async def introduce(self, client: Any, session: Any) -> None:
        """Do the handshake.

        Raises:
            UnsupportedRevision: The server answers with a revision that this client does not speak.
        """
        answer = await self.offer(client, session)
        if answer["protocolVersion"] != client.revision:
            raise UnsupportedRevision(client.revision, answer["protocolVersion"])
        await self.accept(client, session, answer)

    async def offer(self, client: Any, session: Any) -> dict[str, Any]:
        """Send `initialize` and return the answer in wire form: it may be in another revision.

        Raises:
            ProtocolError: The server refuses, or does not say which revision it speaks.
        """
        dispatcher: Dispatcher = session.peer.dispatcher
        session.negotiated.declared["client"] = declared(client, dispatcher, session.transport.extensions)
        method = dispatcher.revision.request(INITIALIZE)
        wire = {
            "protocolVersion": dispatcher.revision.name,
            "capabilities": session.negotiated.declared["client"],
            "clientInfo": introduction(client, dispatcher.revision).model_dump(),
        }
        answer: dict[str, Any] = await session.request(
            untyped(method), jsonrpc.typed_params(method, wire), client.options, begins_session=True
        )
        if not isinstance(answer.get("protocolVersion"), str):
            raise invalid_answer("the result of initialize names no protocolVersion")
        return answer

    async def accept(self, client: Any, session: Any, wire: dict[str, Any]) -> None:
        """Take the answer to `initialize`, whose revision is that of the client, and end the handshake.

        Raises:
            ProtocolError: It is no such answer.
        """
        revision: Revision = session.peer.dispatcher.revision
        answer = jsonrpc.typed_result(revision.request(INITIALIZE), wire)
        agreed = session.negotiated
        agreed.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
        agreed.peer_info = client.server_info = answer.server_info
        client.instructions = answer.instructions
        session.peer.negotiated()
        session.headers = partial(_headers, revision.name)
        await session.notify(revision.methods[INITIALIZED], None, opens_stream=True)

    def answers_by_default(self, method: Method) -> bool:
        """Tell whether a client takes a message that it has no handler for."""
        return method.kind == "notification" or method.name == PING


def _headers(revision: str, method: Method, params: Any) -> Mapping[str, str]:
    return {VERSION_HEADER: revision}


def _initialize(server: Any, session: Any, params: Any) -> Any:
    _introduced(session, params)
    dispatcher: Dispatcher = session.negotiated.dispatcher
    offers = session.negotiated.declared["server"] = declared(server, dispatcher)
    wire = {
        "protocolVersion": dispatcher.revision.name,
        "capabilities": offers,
        "serverInfo": introduction(server, dispatcher.revision),
    }
    if server.instructions is not None:
        wire["instructions"] = server.instructions
    session.peer.negotiated()
    return dispatcher.revision.request(INITIALIZE).result.model_validate(wire)


async def _initialize_by(work: Callable[..., Any], session: Any, params: Any, context: Any) -> Any:
    """Let a server answer `initialize` itself."""
    _introduced(session, params)
    answer = await work(params, context)
    session.negotiated.declared["server"] = answer.capabilities.model_dump()
    session.peer.negotiated()
    return answer


def _introduced(session: Any, params: Any) -> None:
    """Take note of what a client says of itself; raise `ProtocolError` if that is too much to be kept."""
    capabilities = params.capabilities.model_dump()
    if len(to_json([capabilities, params.client_info.model_dump()])) > _MAX_INTRODUCTION_BYTES:
        raise ProtocolError(INVALID_PARAMS, "clientInfo and capabilities are too large")
    session.negotiated.dispatcher = session.peer.dispatcher
    session.negotiated.declared["client"] = capabilities
    session.negotiated.peer_info = params.client_info


def _set_level(server: Any, session: Any, params: Any) -> Any:
    session.negotiated.log_level = params.level
    return {}


async def _note(name: str, work: Callable[..., Awaitable[Any]], session: Any, params: Any, context: Any) -> Any:
    """Let a server answer a client that subscribes or unsubscribes, and note what that one follows now.

    Raises:
        ProtocolError: It follows too much already.
    """
    followed: set[str] = session.negotiated.subscriptions
    key = followed_key(params.uri)
    if name == SUBSCRIBE:
        check_followed({*followed, key})
    answer = await work(params, context)
    getattr(followed, _NOTED[name])(key)
    return answer


def _nothing(server: Any, session: Any, params: Any) -> Any:
    return {}


_DEFAULTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    INITIALIZE: _initialize,
    PING: _nothing,
    SET_LEVEL: _set_level,
}
"""What the runtime answers for servers that do not."""


def needs_session(server: Any, dispatcher: Dispatcher, route: Route) -> bool:
    """Tell whether a request asks a server to remember something: whom to tell of changes, or which logs to send."""
    method = route.method
    subscribes = method.kind == "request" and method.capabilities.get("client") in dispatcher.revision.flags
    return subscribes or (method.name == SET_LEVEL and not dispatcher.is_handled(route, server))


_NOTED = {SUBSCRIBE: "add", UNSUBSCRIBE: "discard"}
"""Method -> what becomes of its URI in the set of what a client follows."""

HANDSHAKE = Handshake()
