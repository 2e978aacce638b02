"""Servers in the stateless era: agreement of each request, questions in results, name of the server in results.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, reduce
from typing import Any, cast

from pydantic_core import to_json

from ..model.base import optional
from ..model.json_types import is_object
from ..protocol import jsonrpc
from ..protocol.capabilities import declared, merge, missing, tree_of
from ..protocol.envelope import parse
from ..protocol.errors import CapabilityMissing, ProtocolError
from ..protocol.methods import DISCOVER, LISTEN, Path, RequestMethod, Role, result_type
from ..protocol.request_scope import Handler, Negotiated, RequestScope
from ..protocol.revision import Dispatcher, Dispatchers, Revision
from ..protocol.routing import Route, UserHandler
from .execution import empty_list, introduction
from .rounds import Questions, RequestStateSigner, asks_for_input, other_than_required
from .server import Server
from .subscriptions import listen

MISSING = "MISSING_REQUIRED_CLIENT_CAPABILITY"


def handler(
    server: Server, dispatcher: Dispatcher, route: Route, served: Dispatchers, signer: RequestStateSigner
) -> Handler:
    """Return the handler of a route: the server's own, else the runtime's.

    Args:
        server: The server.
        dispatcher: Its dispatcher.
        route: The route.
        served: The revisions that are served.
        signer: Signs the state of requests.

    Raises:
        MethodNotFound: There is neither.
    """
    method, revision = route.method, dispatcher.revision
    offers = declared(server, dispatcher)
    context = server.context
    if not isinstance(method, RequestMethod):
        if not dispatcher.is_handled(route, server):
            return lambda scope, params: None
        take = dispatcher.bound(route, server)
        agreement = Negotiated(dispatcher)
        agreement.logs_by_default = False
        if method.extension is not None:  # notifications do not repeat the capabilities of their sender
            agreement.declared["client"], agreement.declared["server"] = {"extensions": {method.extension: {}}}, offers
        return lambda scope, params: take(params, context(scope._replace(negotiated=agreement), params))
    work = _work(server, dispatcher, route, offers, served)
    asks = any(asks_for_input(kind) for kind in method.alternatives)
    signature = to_json(introduction(server, revision).model_dump())
    envelope = {**jsonrpc.filled_in(optional(revision.types, "Result")), **jsonrpc.filled_in(method.result)}
    prefix = b'{"_meta":{' + to_json(revision.meta_keys["server_info"]) + b":" + signature + b"},"
    named: dict[str, Any] = parse(prefix[:-1] + b"}")["_meta"]

    async def handle(scope: RequestScope, params: Any) -> jsonrpc.Written:
        meta = scope.meta or params.meta
        agreed = RequestNegotiated(dispatcher, offers, meta)
        scope = RequestScope(scope.link, scope.origin, scope.request_id, agreed, meta)
        try:
            if asks:
                answer = await _round(signer, server, method, work, scope, params)
            else:
                answer = await work(params, context(scope, params))
                if asks_for_input(type(answer)):
                    raise TypeError(f"{method.name} cannot ask for input")
        except (CapabilityMissing, ExceptionGroup) as error:
            raise _for_client(revision, error) from None
        if not route.is_custom:
            jsonrpc.check_kind(method, answer, getattr(server.__class__, route.handler, work))
        return _signed(answer, prefix, named, envelope)

    return handle


def _for_client(revision: Revision, error: Exception) -> Exception:
    """Return the error for the client; if it consists of missing client capabilities only, one error lists all."""
    found = list(single_errors(error))
    owners = {one.owner if isinstance(one, CapabilityMissing) else "" for one in found}
    if owners != {"client"}:
        return error
    return missing_client_capability(revision, *dict.fromkeys(one.capability[1:] for one in found))


def single_errors(error: Exception) -> Iterator[Any]:
    """Yield an error, or the errors inside a group."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for one in cast("ExceptionGroup[Exception]", error).exceptions:
        yield from single_errors(one)


def _work(
    server: Server, dispatcher: Dispatcher, route: Route, offers: dict[str, Any], served: Dispatchers
) -> UserHandler:
    """Return the server's own handler of a request, else the runtime's."""
    name = route.method.name
    if dispatcher.is_handled(route, server):
        return dispatcher.bound(route, server)
    if name == LISTEN:
        return lambda params, context: listen(server, offers, params, context)
    if name != DISCOVER:
        return empty_list(dispatcher, route, server)

    async def discover(params: object, context: object) -> Any:
        versions = served.supported
        wire = {"supportedVersions": versions, "capabilities": offers, "instructions": server.instructions}
        return {key: value for key, value in wire.items() if value is not None}  # `_signed` adds the rest

    return discover


async def _round(
    signer: RequestStateSigner,
    server: Server,
    method: RequestMethod[Any, Any],
    work: UserHandler,
    scope: RequestScope,
    params: Any,
) -> Any:
    """Run one round of a handler that may ask the client."""
    agreed = scope.negotiated
    assert agreed is not None

    def purpose() -> Any:
        of_the_round = {"_meta", "inputResponses", "requestState"}
        arguments = {key: value for key, value in jsonrpc.plain(params).items() if key not in of_the_round}
        name = introduction(server, agreed.dispatcher.revision).name
        return [server.revision, name, method.name, arguments, scope.origin.principal]

    revision = agreed.dispatcher.revision
    own_params: Any = params
    answers: dict[str, Any] = params.input_responses or {}
    number = 2 if answers else 1
    if params.request_state is not None:
        state = signer.verify(params.request_state, purpose())
        own_params = params.model_copy(update={"request_state": state.get("own")})
        answers, number = {**state.get("answers", {}), **answers}, state.get("round", 1) + 1
    questions = Questions(answers, round=number)
    own: str | None = None
    try:
        answer = await work(own_params, server.context(scope, own_params, questions))
        if not asks_for_input(type(answer)):
            return answer
        asked, own = jsonrpc.plain(answer), answer.request_state
        questions_asked: dict[str, Any] = answer.input_requests or {}
        absent = {
            missing(revision.methods[one.method], revision, "server", agreed.declared, optional(one, "params"))
            for one in questions_asked.values()
        }
        if absent - {None}:
            raise missing_client_capability(revision, *sorted(path[1:] for path in absent if path is not None))
    except BaseException as error:
        other = other_than_required(error)
        if other is error:
            raise
        if other is not None:
            raise other from None
        kind = next(kind for kind in method.alternatives if asks_for_input(kind))
        asked = {**jsonrpc.filled_in(kind), "inputRequests": questions.open}
    if own is not None or questions.used or "inputRequests" not in asked:
        asked["requestState"] = signer.sign({"answers": questions.used, "own": own, "round": number}, purpose())
    return asked


def _signed(answer: object, prefix: bytes, named: dict[str, Any], envelope: dict[str, Any]) -> jsonrpc.Written:
    """Return the JSON text of a result, with the name of the server in its `_meta`.

    Args:
        answer: The result.
        prefix: Beginning of the text, with the name.
        named: `_meta` with the name.
        envelope: Constructor defaults of the result, for a result in wire form.
    """
    if result_type(type(answer)) and optional(answer, "meta") is None:
        return jsonrpc.Written(prefix + jsonrpc.write_result(answer)[1:])
    if answer is None:
        raise TypeError("a handler returned nothing")
    wire: dict[str, Any] = dict(answer) if is_object(answer) else jsonrpc.plain(answer)
    if wire.get("resultType", envelope.get("resultType")) == envelope.get("resultType"):
        wire = {**envelope, **wire}
    wire["_meta"] = {**named, **wire.get("_meta", {})}
    return jsonrpc.Written(jsonrpc.write_result(wire))


def missing_client_capability(revision: Revision, *paths: Path) -> ProtocolError:
    """Make the error for missing client capabilities; its data holds them in the form of capabilities."""
    text = ", ".join(map(".".join, paths))
    tree = reduce(merge, [tree_of(path, {}) for path in paths])
    return ProtocolError(revision.errors[MISSING], f"Missing client capability: {text}", {"requiredCapabilities": tree})


class RequestNegotiated(Negotiated):
    """Agreement of one request, from its `_meta`.

    Args:
        dispatcher: Dispatcher of the revision of the request.
        offers: Capabilities of the server.
        meta: Typed `_meta` of the request.
    """

    logs_by_default = False

    def __init__(self, dispatcher: Dispatcher, offers: dict[str, Any], meta: Any) -> None:
        self.dispatcher = dispatcher
        self.peer_info: Any = getattr(meta, "client_info", None)
        self.log_level: str | None = getattr(meta, "log_level", None)  # not where logging is an extension
        self._offers = offers
        self._meta = meta

    @cached_property
    def declared(self) -> dict[Role, Any]:
        """Side -> capabilities, in wire form."""
        return {"client": self._meta.client_capabilities.model_dump(), "server": self._offers}
