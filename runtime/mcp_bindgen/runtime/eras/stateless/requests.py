"""The era in which every request speaks for itself, from 2026-07-28: what the runtime says and answers there.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio
from pydantic_core import to_json

from ...core import jsonrpc
from ...core.capabilities import missing
from ...core.errors import (
    HEADER_MISMATCH,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    CapabilityMissing,
    MethodNotFound,
    MissingClientCapability,
    ProtocolError,
    UnexpectedAnswer,
    UnsupportedRevision,
)
from ...core.json_types import is_array, is_object
from ...core.methods import Request, untyped
from ...core.model import Model
from ...core.negotiated import Terms
from ...core.revision import CANCELLED, DISCOVER, LIST_TOOLS, LISTEN, Role, Vocabulary, module
from ...endpoint.handlers import Handler, bound, declared, introduction, is_handled
from . import request_meta as metadata
from . import subscriptions
from .input_required import Questions, other_than_required
from .request_meta import CLIENT_CAPABILITIES, CLIENT_INFO, SERVER_INFO, VERSION

if TYPE_CHECKING:
    from ...core.jsonrpc import RequestId
    from ...core.routing import Route
    from ...endpoint.caller import Link
    from ...endpoint.client import Client
    from ...endpoint.server import Server
    from ...endpoint.session import Options, Session

_MOST_ROUNDS = 32
_PAUSE = 0.1  # seconds before a request is made again that asks for nothing


class RequestTerms(Terms):
    """What one request may count on, as it says itself in its `_meta`.

    Args:
        vocabulary: What the server understands in the revision of the request.
        offers: What the server declares.
        meta: The request's `_meta`, typed.
    """

    logs_by_default = False

    def __init__(self, vocabulary: Vocabulary, offers: dict[str, Any], meta: Any) -> None:
        self.vocabulary = vocabulary
        self.peer_info = meta.client_info
        self.log_level = meta.log_level
        self._offers = offers
        self.meta = meta

    @property
    def declared(self) -> dict[Role, Any]:
        """Side -> its capabilities, in wire form."""
        return {"client": self.meta.client_capabilities.model_dump(), "server": self._offers}


# --- servers --------------------------------------------------------------------------------------------------


def handler(server: Server, words: Vocabulary, route: Route[Any], supported: Sequence[str]) -> Handler:
    """What `server` has to say to the messages of `route`.

    Args:
        server: The server.
        words: What it understands.
        route: The method.
        supported: The revisions that are served here, the best first.

    Raises:
        MethodNotFound: It has nothing to say to them.
    """
    method = route.method
    offers = declared(server, words)
    context = module(words.bindings, "server").Context
    if not isinstance(method, Request):
        work = bound(route, server)
        told = method.name == CANCELLED and not is_handled(route, server)
        terms = Terms(words)
        terms.logs_by_default = False
        return lambda link, id_, params: None if told else work(params, context(link, id_, params, terms))
    work = _work(server, words, route, supported, offers)
    asks = any(_asks(kind) for kind in method.alternatives)
    signature = to_json(introduction(server, words).model_dump())

    async def handle(link: Link, id_: RequestId | None, params: Any) -> jsonrpc.Written:
        params, meta = metadata.apart(params)
        terms = RequestTerms(words, offers, meta)
        try:
            if asks:
                answer = await _round(server, method, work, context, link, id_, params, terms)
            else:
                answer = await work(params, context(link, id_, params, terms))
                if _asks(type(answer)):
                    raise TypeError(f"{method.name} cannot ask for input")
        except (CapabilityMissing, ExceptionGroup) as error:
            raise _for_client(error) from None
        return _signed(answer, signature)

    return handle


def _for_client(error: Exception) -> Exception:
    """What a client is told of an error: if all of it is capabilities that it lacks, which these are."""
    found = list(_single_errors(error))
    owners = {one.capability.partition(".")[0] if isinstance(one, CapabilityMissing) else "" for one in found}
    if owners != {"client"}:
        return error
    return MissingClientCapability(*dict.fromkeys(one.capability.partition(".")[2] for one in found))


def _single_errors(error: Exception) -> Iterator[Any]:
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for one in cast("ExceptionGroup[Exception]", error).exceptions:
        yield from _single_errors(one)


def _work(
    server: Server, words: Vocabulary, route: Route[Any], supported: Sequence[str], offers: dict[str, Any]
) -> Callable[[Any, Any], Awaitable[Any]]:
    """The server's own handler of a request, else ours."""
    name = route.method.name
    if is_handled(route, server):
        return bound(route, server)
    if name == LISTEN:
        return lambda params, context: subscriptions.listen(server, words, offers, params, context)
    if name != DISCOVER:
        raise MethodNotFound(name)

    async def discover(params: Any, context: Any) -> Any:
        wire = {"supportedVersions": list(supported), "capabilities": offers, "instructions": server.instructions}
        known = {key: value for key, value in wire.items() if value is not None}
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **known}

    return discover


def _asks(kind: Any) -> bool:
    """Whether a result is one that asks for input."""
    return "input_requests" in getattr(kind, "model_fields", {})


async def _round(
    server: Server,
    method: Request[Any, Any, Any],
    work: Callable[[Any, Any], Awaitable[Any]],
    context: Callable[..., Any],
    link: Link,
    id_: RequestId | None,
    params: Any,
    terms: Terms,
) -> Any:
    """Runs a handler that may ask the client, with the answers so far."""

    def purpose() -> Any:
        mine = {"_meta", "inputResponses", "requestState"}
        said = {key: value for key, value in jsonrpc.plain(params).items() if key not in mine}
        name = introduction(server, terms.vocabulary).name
        return [server.revision, name, method.name, said, getattr(link, "principal", None)]

    state: dict[str, Any] = {}
    told = params
    if params.request_state is not None:
        state = server.state_seal.open(params.request_state, purpose())
        told = params.model_copy(update={"request_state": state.get("own")})
    questions = Questions({**state.get("answers", {}), **(params.input_responses or {})})
    own: str | None = None
    try:
        answer = await work(told, context(link, id_, told, terms, questions))
        if not _asks(type(answer)):
            return answer
        asked, own = jsonrpc.plain(answer), answer.request_state
        methods = {question["method"] for question in asked.get("inputRequests", {}).values()}
        lacking = [missing(terms.vocabulary.methods[name], "server", terms.declared) for name in sorted(methods)]
        if any(lacking):
            raise MissingClientCapability(*[path.partition(".")[2] for path in lacking if path is not None])
    except BaseException as error:
        other = other_than_required(error)
        if other is error:
            raise
        if other is not None:
            raise other from None
        asked = {"resultType": "input_required", "inputRequests": questions.open}
    if own is not None or questions.used or "inputRequests" not in asked:
        asked["requestState"] = server.state_seal.seal({"answers": questions.used, "own": own}, purpose())
    return asked


def _signed(answer: Any, signature: bytes) -> jsonrpc.Written:
    """The JSON text of a result, with the name of the server that gives it."""
    if isinstance(answer, Model) and getattr(answer, "result_type", None) and getattr(answer, "meta", None) is None:
        data = jsonrpc.write_result(answer)
        return jsonrpc.Written(b'{"_meta":{"' + SERVER_INFO.encode() + b'":' + signature + b"}," + data[1:])
    if answer is None:
        raise TypeError("a handler returned nothing")
    wire: dict[str, Any] = {"resultType": "complete", **jsonrpc.plain(answer)}
    wire["_meta"] = {SERVER_INFO: jsonrpc.parse(signature), **wire.get("_meta", {})}
    return jsonrpc.Written(to_json(wire))


# --- clients --------------------------------------------------------------------------------------------------


async def introduce(client: Client, session: Session) -> None:
    """Asks the server what it offers, in the client's revision.

    Raises:
        UnsupportedRevision: The server does not speak the client's revision.
    """
    try:
        answer = await discover(client, session)
    except ProtocolError as error:
        raise _disagreement(client.revision, error) or error from None
    if client.revision not in answer.supported_versions:
        raise UnsupportedRevision(client.revision, *answer.supported_versions)
    accept(client, session, answer)


async def discover(client: Client, session: Session, options: Options | None = None) -> Any:
    """Asks the server which revisions it speaks and what it offers.

    Raises:
        ProtocolError: The server refuses, or answers something else.
    """
    _prepare(client, session)
    method: Any = session.peer.vocabulary.methods[DISCOVER]
    params = jsonrpc.typed_params(method, {"_meta": session.meta})
    wire = await session.request(untyped(method), params, options or client.options)
    return jsonrpc.typed_result(method, wire)


def accept(client: Client, session: Session, answer: Any) -> None:
    """Takes what the server says of itself: from now on the client's revision is spoken."""
    _prepare(client, session)
    session.terms.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.terms.peer_info = client.server_info = answer.meta.server_info if answer.meta is not None else None
    client.instructions = answer.instructions
    session.peer.negotiated()


def _prepare(client: Client, session: Session) -> None:
    """Tells a session what requests have to say."""
    words = session.peer.vocabulary
    session.terms.declared["client"] = declared(client, words)
    session.meta = {
        VERSION: words.revision,
        CLIENT_INFO: introduction(client, words).model_dump(),
        CLIENT_CAPABILITIES: session.terms.declared["client"],
    }
    if getattr(session.transport, "has_headers", False):
        from ...http.client.header_mirror import Mirror

        client.mirror = Mirror(words.revision, words.methods)
        session.headers = client.mirror.headers


def is_modern(error: ProtocolError) -> bool:
    """Whether only a server of this era says so (MCP 2026-07-28, "Versioning": Backward Compatibility)."""
    return error.code in (HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION)


def spoken(error: Exception) -> list[str]:
    """The revisions that a server names because it does not speak ours; none if that is not its trouble."""
    data = error.data if isinstance(error, ProtocolError) else None
    supported = data.get("supported") if is_object(data) else None
    return [version for version in supported if isinstance(version, str)] if is_array(supported) else []


def _disagreement(revision: str, error: ProtocolError) -> UnsupportedRevision | None:
    supported = spoken(error) if error.code == UNSUPPORTED_VERSION else []
    return UnsupportedRevision(revision, *supported) if supported else None


async def relearn(client: Client) -> None:
    """Reads the list of tools again, because what one of them wants to see in headers has changed."""
    method: Any = client.link.peer.vocabulary.methods[LIST_TOOLS]

    def page(cursor: str | None) -> Awaitable[Any]:
        more = {} if cursor is None else {"cursor": cursor}
        return client.request(method, jsonrpc.typed_params(method, {"_meta": client.link.meta, **more}))

    client = client.with_options(fresh=True)
    async for _ in client.pages(page):
        pass


async def settle(client: Client, method: Request[Any, Any, Any], params: Any, answer: Any) -> Any:
    """Answers what the server asks, with the client's own handlers, until it gives a result.

    Raises:
        MethodNotFound: It asks something that the client has no handler for.
        UnexpectedAnswer: It does not stop asking.
    """
    for _ in range(_MOST_ROUNDS):
        if not _asks(type(answer)):
            return answer
        questions: dict[str, Any] = answer.input_requests or {}
        if not questions:
            await anyio.sleep(_PAUSE)
        responses = {key: await _answer(client, question) for key, question in questions.items()}
        more = {"input_responses": responses or None, "request_state": answer.request_state}
        answer = await client.request(method, params.model_copy(update=more))
    raise UnexpectedAnswer(method.name, answer)


async def _answer(client: Client, question: Any) -> Any:
    answer = await client.answer(question.method, question.params)
    asked: Any = client.link.peer.vocabulary.methods[question.method]
    return answer if isinstance(answer, Model) else jsonrpc.typed_result(asked, answer)


def understood(method: Request[Any, Any, Any], answer: Any) -> Any:
    """`answer`, if it is of the kind that it says it is; raises `ProtocolError`."""
    field = getattr(cast(Any, type(answer)), "model_fields", {}).get("result_type")
    if field is not None and answer.result_type != field.default:
        raise jsonrpc.invalid(f"the result of {method.name} is of an unknown kind: {answer.result_type!r}")
    return answer
