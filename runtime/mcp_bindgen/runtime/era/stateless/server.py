"""Answer stateless requests: what each may count on, questions to the client, and the server's signature.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_core import to_json

from ...model.base import Model
from ...model.json_types import is_object
from ...protocol import jsonrpc
from ...protocol.capabilities import declared, missing
from ...protocol.envelope import parse
from ...protocol.errors import CapabilityMissing, MethodNotFound, MissingClientCapability
from ...protocol.methods import Path, Request
from ...protocol.negotiated import Negotiated
from ...protocol.revision import Dispatcher, Handler, Revision
from ...protocol.routing import Route
from ...session.request_scope import RequestScope
from ..lifecycle import DISCOVER, LISTEN
from ..sides import bound, empty_list, introduction
from . import subscriptions
from .input_required import Questions, asks_for_input, other_than_required
from .request_meta import RequestNegotiated, separated

MISSING = "MISSING_REQUIRED_CLIENT_CAPABILITY"


def handler(server: Any, dispatcher: Dispatcher, route: Route, supported: Sequence[str]) -> Handler:
    """Return what answers the messages of a route.

    Args:
        server: The server.
        dispatcher: What it takes.
        route: The method.
        supported: The revisions that are served here, the best first.

    Raises:
        MethodNotFound: Nothing does.
    """
    method, revision = route.method, dispatcher.revision
    offers = declared(server, dispatcher)
    context = server.context
    if not isinstance(method, Request):
        if not dispatcher.is_handled(route, server):
            return lambda scope, params: None
        take = bound(dispatcher, route, server)
        told = Negotiated(dispatcher)
        told.logs_by_default = False
        if method.extension is not None:  # notifications do not say what their sender declares
            told.declared["client"], told.declared["server"] = {"extensions": {method.extension: {}}}, offers
        return lambda scope, params: take(params, context(replace(scope, negotiated=told), params))
    work = _work(server, dispatcher, route, supported, offers)
    asks = any(asks_for_input(kind) for kind in method.alternatives)
    signature = to_json(introduction(server, revision).model_dump())
    envelope = {**jsonrpc.filled_in(getattr(revision.types, "Result", None)), **jsonrpc.filled_in(method.result)}
    prefix = b'{"_meta":{' + to_json(revision.meta_keys["server_info"]) + b":" + signature + b"},"

    async def handle(scope: RequestScope, params: Any) -> jsonrpc.Written:
        params, meta = separated(params)
        agreed = RequestNegotiated(dispatcher, offers, meta)
        scope = RequestScope(scope.link, scope.origin, scope.request_id, agreed, meta)
        try:
            if asks:
                answer = await _round(server, method, work, context, scope, params, agreed)
            else:
                answer = await work(params, context(scope, params))
                if asks_for_input(type(answer)):
                    raise TypeError(f"{method.name} cannot ask for input")
        except (CapabilityMissing, ExceptionGroup) as error:
            raise _for_client(revision, error) from None
        if not route.is_custom:
            jsonrpc.check_kind(method, answer, getattr(server.__class__, route.handler, work))
        return _signed(answer, prefix, envelope)

    return handle


def _for_client(revision: Revision, error: Exception) -> Exception:
    """Return what a client is told of an error: if all of it is capabilities that it lacks, which these are."""
    found = list(single_errors(error))
    owners = {one.owner if isinstance(one, CapabilityMissing) else "" for one in found}
    if owners != {"client"}:
        return error
    return lacking(revision, *dict.fromkeys(one.capability[1:] for one in found))


def single_errors(error: Exception) -> Iterator[Any]:
    """Yield an error, or those inside of a group."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for one in cast("ExceptionGroup[Exception]", error).exceptions:
        yield from single_errors(one)


def _work(
    server: Any, dispatcher: Dispatcher, route: Route, supported: Sequence[str], offers: dict[str, Any]
) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return the server's own handler of a request, else the runtime's."""
    name = route.method.name
    if dispatcher.is_handled(route, server):
        return bound(dispatcher, route, server)
    if name == LISTEN:
        return lambda params, context: subscriptions.listen(server, dispatcher.revision, offers, params, context)
    nothing = empty_list(dispatcher, route, server)

    async def list_nothing(params: Any, context: Any) -> Any:
        assert nothing is not None
        return nothing()

    if nothing is not None:
        return list_nothing
    if name != DISCOVER:
        raise MethodNotFound(name)

    async def discover(params: Any, context: Any) -> Any:
        wire = {"supportedVersions": list(supported), "capabilities": offers, "instructions": server.instructions}
        return {key: value for key, value in wire.items() if value is not None}  # `_signed` adds the rest

    return discover


async def _round(
    server: Any,
    method: Request[Any, Any, Any],
    work: Callable[[Any, Any], Awaitable[Any]],
    context: Callable[..., Any],
    scope: RequestScope,
    params: Any,
    agreed: Negotiated,
) -> Any:
    """Run a handler that may ask the client, with the answers so far."""

    def purpose() -> Any:
        mine = {"_meta", "inputResponses", "requestState"}
        said = {key: value for key, value in jsonrpc.plain(params).items() if key not in mine}
        name = introduction(server, agreed.dispatcher.revision).name
        return [server.revision, name, method.name, said, scope.origin.principal]

    revision = agreed.dispatcher.revision
    state: dict[str, Any] = {}
    told = params
    if params.request_state is not None:
        state = server.request_state_signer.open(params.request_state, purpose())
        told = params.model_copy(update={"request_state": state.get("own")})
    questions = Questions({**state.get("answers", {}), **(params.input_responses or {})})
    own: str | None = None
    try:
        answer = await work(told, context(scope, told, questions))
        if not asks_for_input(type(answer)):
            return answer
        asked, own = jsonrpc.plain(answer), answer.request_state
        questions_asked: dict[str, Any] = answer.input_requests or {}
        absent = {
            missing(revision.methods[one.method], revision, "server", agreed.declared, getattr(one, "params", None))
            for one in questions_asked.values()
        }
        if absent - {None}:
            raise lacking(revision, *sorted(path[1:] for path in absent if path is not None))
    except BaseException as error:
        other = other_than_required(error)
        if other is error:
            raise
        if other is not None:
            raise other from None
        kind = next(kind for kind in method.alternatives if asks_for_input(kind))
        asked = {**jsonrpc.filled_in(kind), "inputRequests": questions.open}
    if own is not None or questions.used or "inputRequests" not in asked:
        asked["requestState"] = server.request_state_signer.seal({"answers": questions.used, "own": own}, purpose())
    return asked


def _signed(answer: Any, prefix: bytes, envelope: dict[str, Any]) -> jsonrpc.Written:
    """Return the JSON text of a result, with the name of the server that gives it in its `_meta`.

    Args:
        answer: The result.
        prefix: How its text begins, with that name.
        envelope: What the constructor of the usual result fills in, for one that is given in wire form.
    """
    if isinstance(answer, Model) and getattr(answer, "result_type", None) and getattr(answer, "meta", None) is None:
        return jsonrpc.Written(prefix + jsonrpc.write_result(answer)[1:])
    if answer is None:
        raise TypeError("a handler returned nothing")
    wire: dict[str, Any] = dict(answer) if is_object(answer) else jsonrpc.plain(answer)
    if wire.get("resultType", envelope.get("resultType")) == envelope.get("resultType"):
        wire = {**envelope, **wire}
    wire["_meta"] = {**parse(prefix[:-1] + b"}")["_meta"], **wire.get("_meta", {})}
    return jsonrpc.Written(to_json(wire))


def lacking(revision: Revision, *paths: Path) -> MissingClientCapability:
    """Make the error that names capabilities which the client did not declare."""
    return MissingClientCapability(revision.errors[MISSING], *paths)
