"""Ask stateless servers: discovery, what requests say of their sender, and answers to what a result asks.

MCP 2026-07-28, "Overview", "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from typing import Any, cast

import anyio

from ...model.base import Model
from ...model.json_types import is_array, is_object
from ...protocol import jsonrpc
from ...protocol.capabilities import declared
from ...protocol.envelope import invalid_answer
from ...protocol.errors import ProtocolError, UnexpectedAnswer, UnsupportedRevision
from ...protocol.methods import Request, untyped
from ...protocol.revision import Dispatcher, Revision
from ..lifecycle import DISCOVER
from ..sides import introduction
from .input_required import asks_for_input

UNSUPPORTED = "UNSUPPORTED_PROTOCOL_VERSION"

_MOST_ROUNDS = 32
_PAUSE = 0.1  # seconds before a request is made again that asks for nothing


async def introduce(client: Any, session: Any) -> None:
    """Ask the server what it offers, in the client's revision.

    Raises:
        UnsupportedRevision: The server does not speak the client's revision.
    """
    try:
        answer = await discover(client, session)
    except ProtocolError as error:
        raise _disagreement(client.dispatcher.revision, error) or error from None
    if client.revision not in answer.supported_versions:
        raise UnsupportedRevision(client.revision, *answer.supported_versions)
    accept(client, session, answer)


async def discover(client: Any, session: Any, options: Any = None) -> Any:
    """Ask the server which revisions it speaks and what it offers.

    Raises:
        ProtocolError: The server refuses, or answers something else.
    """
    _prepare(client, session)
    method = session.peer.dispatcher.revision.request(DISCOVER)
    params = jsonrpc.typed_params(method, {"_meta": session.meta})
    wire = await session.request(untyped(method), params, options or client.options)
    return jsonrpc.typed_result(method, wire)


def accept(client: Any, session: Any, answer: Any) -> None:
    """Accept what the server says of itself: from now on the client's revision is spoken."""
    _prepare(client, session)
    session.negotiated.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.negotiated.peer_info = client.server_info = answer.meta.server_info if answer.meta is not None else None
    client.instructions = answer.instructions
    session.peer.negotiated()


def _prepare(client: Any, session: Any) -> None:
    """Tell a session what requests have to say."""
    dispatcher: Dispatcher = session.peer.dispatcher
    revision = dispatcher.revision
    session.negotiated.declared["client"] = declared(client, dispatcher, session.transport.extensions)
    session.meta = said(client, revision, session.negotiated.declared["client"])
    session.meta |= jsonrpc.filled_in(revision.request(DISCOVER).params.model_fields["meta"].annotation)
    if session.transport.mirror is not None:
        client.mirror = session.transport.mirror(revision)
        session.headers = client.mirror.headers


def said(client: Any, revision: Revision, capabilities: Any) -> dict[str, Any]:
    """Return what the `_meta` of every request says of its client."""
    values = {
        "protocol_version": revision.name,
        "client_info": introduction(client, revision).model_dump(),
        "client_capabilities": capabilities,
    }
    return {revision.meta_keys[name]: value for name, value in values.items() if name in revision.meta_keys}


def is_modern(revision: Revision, error: ProtocolError) -> bool:
    """Tell whether only a server of this era says so (MCP 2026-07-28, "Versioning": Backward Compatibility)."""
    return error.code in revision.errors.values()


def spoken(error: Exception) -> list[str]:
    """Return the revisions that a server names because it does not speak ours; none if the error is another one."""
    data = error.data if isinstance(error, ProtocolError) else None
    supported = data.get("supported") if is_object(data) else None
    return [version for version in supported if isinstance(version, str)] if is_array(supported) else []


def _disagreement(revision: Revision, error: ProtocolError) -> UnsupportedRevision | None:
    supported = spoken(error) if error.code == revision.errors[UNSUPPORTED] else []
    return UnsupportedRevision(revision.name, *supported) if supported else None


async def settle(client: Any, method: Request[Any, Any, Any], params: Any, answer: Any) -> Any:
    """Answer what the server asks, with the client's own handlers, until it returns a result.

    Raises:
        MethodNotFound: It asks something that the client has no handler for.
        UnexpectedAnswer: It does not stop asking.
    """
    for _ in range(_MOST_ROUNDS):
        if not asks_for_input(type(answer)):
            return answer
        questions: dict[str, Any] = answer.input_requests or {}
        if not questions:
            await anyio.sleep(_PAUSE)
        responses = {key: await _answer(client, question) for key, question in questions.items()}
        more = {"input_responses": responses or None, "request_state": answer.request_state}
        answer = await client.request(method, params.model_copy(update=more))
    raise UnexpectedAnswer(method.name, answer)


async def _answer(client: Any, question: Any) -> Any:
    answer = await client.answer(question.method, question.params)
    asked = client.dispatcher.revision.request(question.method)
    return answer if isinstance(answer, Model) else jsonrpc.typed_result(asked, answer)


def understood(method: Request[Any, Any, Any], answer: Any) -> Any:
    """Return `answer`, if it is of the kind that it says it is; raise `ProtocolError`."""
    field = getattr(cast(Any, type(answer)), "model_fields", {}).get("result_type")
    if field is not None and answer.result_type != field.default:
        raise invalid_answer(f"the result of {method.name} is of an unknown kind: {answer.result_type!r}")
    return answer
