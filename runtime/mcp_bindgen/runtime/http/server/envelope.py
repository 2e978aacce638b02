"""What was posted: enough of it to know where its answers go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core import jsonrpc
from ...core.json_types import is_array, is_object
from ...core.jsonrpc import RequestId
from ...core.revision import CANCELLED, INITIALIZE


@dataclass(frozen=True, slots=True)
class Posted:
    """A body that holds a message, or a batch of them.

    Attributes:
        ids: The ids of the requests in it.
        cancelled: The ids of requests that it takes back.
        introduces: Whether it begins a session.
        batch: Whether it is a batch.
    """

    ids: tuple[RequestId, ...] = ()
    cancelled: tuple[RequestId, ...] = ()
    introduces: bool = False
    batch: bool = False


def posted(body: bytes) -> Posted:
    """What a body holds.

    Raises:
        ProtocolError: Something in it is not a JSON-RPC message. A session would answer that without an id, and nobody
            could tell to which stream such an answer belongs.
    """
    document = jsonrpc.parse(body)
    messages: list[Any] = document if is_array(document) else [document]
    if not messages:
        raise jsonrpc.invalid("the batch is empty")
    ids: list[RequestId] = []
    cancelled: list[RequestId] = []
    introduces = False
    for message in messages:
        if not is_object(message) or message.get("jsonrpc") != "2.0":
            raise jsonrpc.invalid('a message is a JSON object whose "jsonrpc" is "2.0"')
        method = message.get("method")
        if "method" not in message and ("result" in message or "error" in message):
            continue
        if not isinstance(method, str):
            raise jsonrpc.invalid('"method" must be a string')
        if "id" in message:
            id_ = jsonrpc.envelope_id(message)
            if id_ is None:
                raise jsonrpc.invalid('"id" must be a string or an integer')
            ids.append(id_)
            introduces = introduces or method == INITIALIZE
        elif method == CANCELLED:
            cancelled += _taken_back(message.get("params"))
    if len(set(ids)) < len(ids):
        raise jsonrpc.invalid("an id is used twice")
    return Posted(tuple(ids), tuple(cancelled), introduces and not is_array(document), is_array(document))


def _taken_back(params: Any) -> list[RequestId]:
    id_ = jsonrpc.envelope_id({"id": params.get("requestId")}) if is_object(params) else None
    return [] if id_ is None else [id_]
