"""Introduction of a client to its server: the handshake (MCP, "Lifecycle"), or `server/discover`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..era.stateless import UNSUPPORTED
from ..model.json_types import is_array, is_object
from ..protocol import jsonrpc
from ..protocol.capabilities import Side, declared
from ..protocol.envelope import invalid_answer
from ..protocol.errors import ProtocolError, UnsupportedRevision
from ..protocol.invalid_items import InvalidItem
from ..protocol.limits import Options
from ..protocol.methods import DISCOVER, INITIALIZE, INITIALIZED, Method, Notification, untyped
from ..protocol.revision import Revision
from .handlers import introduction
from .session import Session

VERSION_HEADER = "MCP-Protocol-Version"


class HeaderMirror(Protocol):
    """Mirror that copies parts of messages into headers, as results of the server ask for."""

    def headers(self, method: Method, params: object) -> Mapping[str, str]:
        """Return the headers of a message."""
        ...

    def learn(self, method: Method, answer: object, report: Callable[[InvalidItem], object]) -> Any:
        """Learn from a result which headers are needed; leave out, and report, entries whose headers are invalid."""
        ...

    def source(self, method: Method) -> str | None:
        """Return the method whose results name the headers of messages of `method`, if there is one."""
        ...


class ClientSide(Side):
    """The part of a client that its introduction reads and sets.

    Attributes:
        options: Options of requests; `Client.with_options` changes them for a few calls.
        server_info: Introduction of the server, an `Implementation`.
        server_capabilities: Capabilities of the server, in wire form.
        instructions: Advice of the server to models.
        mirror: Copies parts of messages into HTTP headers; `None` if unused.
    """

    options: Options = Options()
    server_info: Any = None
    server_capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    mirror: HeaderMirror | None = None


async def introduce(client: ClientSide, session: Session) -> None:
    """Introduce a client to its server, in the way of the era of its revision.

    Raises:
        UnsupportedRevision: The server does not speak the client's revision.
    """
    stateless = session.peer.dispatcher.revision.era.is_stateless
    await (_introduce_stateless if stateless else _shake_hands)(client, session)


# --- the handshake --------------------------------------------------------------------------------------------


async def _shake_hands(client: ClientSide, session: Session) -> None:
    answer = await offer_handshake(client, session)
    if answer["protocolVersion"] != client.revision:
        raise UnsupportedRevision(client.revision, answer["protocolVersion"])
    await accept_handshake(client, session, answer)


async def offer_handshake(client: ClientSide, session: Session) -> dict[str, Any]:
    """Send `initialize` and return the result in wire form; it may be in another revision.

    Raises:
        ProtocolError: The server refuses, or names no revision.
    """
    dispatcher = session.peer.dispatcher
    session.negotiated.declared["client"] = declared(client, dispatcher, session.transport.extensions)
    method = dispatcher.revision.request(INITIALIZE)
    wire = {
        "protocolVersion": dispatcher.revision.name,
        "capabilities": session.negotiated.declared["client"],
        "clientInfo": introduction(client, dispatcher.revision).model_dump(),
    }
    params = jsonrpc.typed_params(method, wire)
    answer = await session.request(untyped(method), params, client.options, begins_session=True)
    if not isinstance(answer.get("protocolVersion"), str):
        raise invalid_answer("the result of initialize names no protocolVersion")
    return answer


async def accept_handshake(client: ClientSide, session: Session, wire: dict[str, Any]) -> None:
    """Take the result of `initialize`, in the client's revision, and end the handshake.

    Raises:
        ProtocolError: The result is invalid.
    """
    revision = session.peer.dispatcher.revision
    answer = jsonrpc.typed_result(revision.request(INITIALIZE), wire)
    _accept(client, session, answer, answer.server_info)
    session.headers = lambda method, params: {VERSION_HEADER: revision.name}
    initialized = revision.methods[INITIALIZED]
    assert isinstance(initialized, Notification)
    await session.notify(initialized, None, opens_stream=True)


def _accept(client: ClientSide, session: Session, answer: Any, server_info: Any) -> None:
    """Take over the server's description of itself; from now on both sides know the revision."""
    session.negotiated.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.negotiated.peer_info = client.server_info = server_info
    client.instructions = answer.instructions
    session.peer.negotiated()


# --- discovery ------------------------------------------------------------------------------------------------


async def _introduce_stateless(client: ClientSide, session: Session) -> None:
    try:
        answer = await discover(client, session)
    except ProtocolError as error:
        revision = client.dispatcher.revision
        named = spoken(error) if error.code == revision.errors[UNSUPPORTED] else []
        raise (UnsupportedRevision(revision.name, *named) if named else error) from None
    if client.revision not in answer.supported_versions:
        raise UnsupportedRevision(client.revision, *answer.supported_versions)
    accept_discovery(client, session, answer)


async def discover(client: ClientSide, session: Session, options: Options | None = None) -> Any:
    """Return the server's revisions and capabilities.

    Raises:
        ProtocolError: The server refuses, or its result is invalid.
    """
    _prepare(client, session)
    method = session.peer.dispatcher.revision.request(DISCOVER)
    params = jsonrpc.typed_params(method, {"_meta": session.meta})
    wire = await session.request(untyped(method), params, options or client.options)
    return jsonrpc.typed_result(method, wire)


def accept_discovery(client: ClientSide, session: Session, answer: Any) -> None:
    """Take the result of `discover`; from now on the client's revision is spoken."""
    _prepare(client, session)
    _accept(client, session, answer, answer.meta.server_info if answer.meta is not None else None)


def _prepare(client: ClientSide, session: Session) -> None:
    """Set the metadata and headers of the session's requests."""
    revision = session.peer.dispatcher.revision
    session.negotiated.declared["client"] = declared(client, session.peer.dispatcher, session.transport.extensions)
    session.meta = {
        **said(client, revision, session.negotiated.declared["client"]),
        **jsonrpc.filled_in(revision.request(DISCOVER).params.model_fields["meta"].annotation),
    }
    if session.transport.mirror is not None:
        mirror: HeaderMirror = session.transport.mirror(revision)
        client.mirror, session.headers = mirror, mirror.headers


def said(client: Side, revision: Revision, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's part of the `_meta` of every request."""
    values = {
        "protocol_version": revision.name,
        "client_info": introduction(client, revision).model_dump(),
        "client_capabilities": capabilities,
    }
    return {revision.meta_keys[name]: value for name, value in values.items() if name in revision.meta_keys}


def spoken(error: Exception) -> list[str]:
    """Return the revisions that a server names in an error because it does not speak ours; else nothing."""
    data = error.data if isinstance(error, ProtocolError) else None
    supported = data.get("supported") if is_object(data) else None
    return [version for version in supported if isinstance(version, str)] if is_array(supported) else []
