"""Read as much of a posted body as tells where its answers go."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.access import Operation
from ...core.envelope import RequestId, invalid, read_envelopes, request_id
from ...core.errors import ProtocolError
from ...core.json_types import is_object
from ...eras.lifecycle import CANCELLED, INITIALIZE
from ...eras.operations import operations
from ._call import EVENTS, JSON, Call, HttpError, refused


@dataclass(frozen=True, slots=True)
class Posted:
    """A body that holds a message, or a batch of them.

    Attributes:
        ids: The ids of the requests in it.
        cancelled: The ids of requests that it takes back.
        introduces: Whether it begins a session.
        batch: Whether it is a batch.
        operations: What the requests and notifications in it ask for.
    """

    ids: list[RequestId]
    cancelled: list[RequestId]
    introduces: bool
    batch: bool
    operations: list[Operation]


def posted(call: Call, body: bytes) -> Posted:
    """Read what a POST of a stateful revision holds.

    Raises:
        HttpError: Its client does not accept both kinds of answers, or something in it is not a JSON-RPC message. A
            session would answer that without an id, and nobody could tell to which stream such an answer belongs.
    """
    if not call.accepts(JSON) or not call.accepts(EVENTS):
        raise refused(406, "answers are application/json or text/event-stream; the client must accept both")
    try:
        return _read(body)
    except ProtocolError as error:
        raise HttpError(400, error) from None


def _read(body: bytes) -> Posted:
    envelopes, is_batch = read_envelopes(body)
    ids = [one.id for one in envelopes if one.kind == "request" and one.id is not None]
    if len(set(ids)) < len(ids):
        raise invalid("an id is used twice")
    params = [one.params for one in envelopes if one.method == CANCELLED and one.kind == "notification"]
    cancelled = [request_id({"id": one.get("requestId")}) for one in params if is_object(one)]
    introduces = not is_batch and envelopes[0].kind == "request" and envelopes[0].method == INITIALIZE
    asked = [found for one in envelopes if not one.is_answer for found in operations(one.method, one.params)]
    return Posted(ids, [id_ for id_ in cancelled if id_ is not None], introduces, is_batch, asked)
