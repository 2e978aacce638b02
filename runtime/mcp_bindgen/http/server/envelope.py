"""Read as much of a posted body as tells where its answers go."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.access import Operation, operations_named
from mcp_bindgen.runtime.protocol.envelope import BatchTooLarge, RequestId, invalid, parse, read_envelopes, request_id
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import CANCELLED, INITIALIZE, INITIALIZED, PROGRESS

from .call import EVENTS, JSON, Call, HttpError, refused


@dataclass(frozen=True, slots=True)
class Posted:
    """A body that holds a message, or a batch of them.

    Attributes:
        ids: The ids of the requests in it.
        cancelled: The ids of requests that it takes back.
        answered: The ids of the server's requests that it answers, or tells the progress of.
        introduces: Whether it begins a session.
        confirms: Whether it says that the client is initialized.
        batch: Whether it is a batch.
        operations: What the requests and notifications in it ask for.
    """

    ids: list[RequestId]
    cancelled: list[RequestId]
    answered: list[int]
    introduces: bool
    confirms: bool
    batch: bool
    operations: list[Operation]


def posted(call: Call, body: bytes, max_members: int) -> Posted:
    """Read what a POST of a stateful revision holds, with at most so many messages in a batch.

    Raises:
        HttpError: Its client does not accept both kinds of answers, or something in it is not a JSON-RPC message. A
            session would answer that without an id, and nobody could tell to which stream such an answer belongs.
    """
    if not call.accepts(JSON) or not call.accepts(EVENTS):
        raise refused(406, "answers are application/json or text/event-stream; the client must accept both")
    try:
        return read_posted(body, max_members)
    except BatchTooLarge as error:
        raise HttpError(413, error) from None
    except ProtocolError as error:
        raise HttpError(400, error) from None


def read_posted(body: bytes, max_members: int | None = None) -> Posted:
    """Read what a body holds; raises `ProtocolError` as `read_envelopes` does."""
    envelopes, is_batch = read_envelopes(body, max_members)
    ids = [one.id for one in envelopes if one.kind == "request" and one.id is not None]
    if len(set(ids)) < len(ids):
        raise invalid("an id is used twice")
    params = [one.params for one in envelopes if one.method == CANCELLED and one.kind == "notification"]
    cancelled = [request_id({"id": one.get("requestId")}) for one in params if is_object(one)]
    introduces = not is_batch and envelopes[0].kind == "request" and envelopes[0].method == INITIALIZE
    tokens = [one.params.get("progressToken") for one in envelopes if one.method == PROGRESS and is_object(one.params)]
    answered = [one.id for one in envelopes if one.is_answer]
    numbers = [id_ for id_ in [*answered, *tokens] if type(id_) is int]
    confirms = any(one.method == INITIALIZED for one in envelopes)
    asked = [found for one in envelopes if not one.is_answer for found in operations_named(one.method, one.params)]
    taken_back = [id_ for id_ in cancelled if id_ is not None]
    return Posted(ids, taken_back, numbers, introduces, confirms, is_batch, asked)


def for_others(body: bytes) -> bytes:
    """Return what of a posted body another worker may wait for: of a batch, answers, progress and cancellations."""
    message = parse(body)
    if not is_array(message):
        return body
    return to_json([one for one in message if "method" not in one or one["method"] in (CANCELLED, PROGRESS)])
