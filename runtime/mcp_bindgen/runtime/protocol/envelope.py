"""Envelopes of JSON-RPC messages: kind, id and method (JSON-RPC 2.0, sections 4 and 5)."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from ..model.json_types import is_array, is_object, parse_json, whole_json
from .errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ProtocolError, received

RequestId = int | str

Kind = Literal["request", "notification", "result", "error"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A JSON-RPC message with unread content.

    Attributes:
        kind: Kind of the message.
        id: The id of the request that it is or answers; `None` for notifications, and for errors that answer none.
        method: The name of its method; empty for answers.
        message: The whole message.
    """

    kind: Kind
    id: RequestId | None
    method: str
    message: dict[str, Any]

    @property
    def params(self) -> Any:
        """The params in wire form, of any type; `None` when there are none."""
        return self.message.get("params")

    @property
    def is_answer(self) -> bool:
        """True if it answers a request."""
        return self.kind in ("result", "error")

    @property
    def error(self) -> ProtocolError:
        """The error of an error response, however badly it is formed."""
        body = self.message["error"]
        if not is_object(body):
            return invalid_answer("the error of a response is not an object")
        code, text = body.get("code"), body.get("message")
        code, text = code if type(code) is int else INTERNAL_ERROR, text if isinstance(text, str) else ""
        return received(code, text, body.get("data"))


class Mended(dict[str, Any]):
    """A message in whose strings, except its id, U+FFFD replaces halves of surrogate pairs (RFC 8259, 8.2)."""


class BatchReply(bytes):
    """The answers to a batch, as JSON text.

    Attributes:
        ids: The ids of the requests in that batch.
    """

    ids: Collection[RequestId] = ()


def read_envelope(message: object) -> Envelope:
    """Read the envelope of a parsed message.

    Raises:
        ProtocolError: -32600, it is not a JSON-RPC message; `request_id` returns the id for the response.
    """
    if not is_object(message):
        raise invalid("a message is a JSON object", Malformed)
    if message.get("jsonrpc") != "2.0":
        raise invalid('"jsonrpc" must be "2.0"', Malformed)
    id_ = request_id(message)
    if is_answer(message):
        is_error = "error" in message and message.get("result") is None
        return Envelope("error" if is_error else "result", id_, "", message)
    method = message.get("method")
    if not isinstance(method, str):
        raise invalid('"method" must be a string', Malformed)
    if "id" not in message:
        return Envelope("notification", None, method, message)
    if id_ is None:
        raise invalid('"id" must be a string or an integer', Malformed)
    return Envelope("request", id_, method, message)


def read_envelopes(data: bytes, max_members: int | None = None) -> tuple[list[Envelope], bool]:
    """Read the envelopes of a message, or of a batch of them, from its JSON text.

    Args:
        data: The text.
        max_members: Messages that a batch may have; None for any number.

    Returns:
        The envelopes, at least one, and whether they are a batch.

    Raises:
        BatchTooLarge: The batch has more messages.
        ProtocolError: The text is no JSON (-32700), or something in it is no JSON-RPC message (-32600).
    """
    document = parse(data)
    if max_members is not None and is_array(document):
        check_batch_size(document, max_members)
    messages: list[Any] = document if is_array(document) else [document]
    if not messages:
        raise invalid("the batch is empty")
    return [read_envelope(message) for message in messages], is_array(document)


class Malformed(ProtocolError):
    """Error for text that is no message, or is no message for this connection: an HTTP request with it is refused."""


class BatchTooLarge(Malformed):
    """Error -32600 for a batch with too many messages."""


def check_batch_size(messages: list[Any], max_members: int) -> None:
    """Check the number of messages in a batch; raises `BatchTooLarge`."""
    if len(messages) > max_members:
        raise invalid(f"the batch has {len(messages)} messages; send at most {max_members}", BatchTooLarge)


def parse(data: bytes) -> Any:
    """Parse a JSON document; a message with half of a surrogate pair, or such a message of a batch, is `Mended`.

    Raises:
        ProtocolError: -32700, it is none.
    """
    try:
        return parse_json(data)
    except ValueError as error:
        try:
            document = json.loads(data.decode())
            return [_mended(one) for one in document] if is_array(document) else _mended(document)
        except (ValueError, RecursionError):
            raise Malformed(PARSE_ERROR, "Parse error", str(error)) from None


def _mended(message: object) -> Any:
    whole = parse_json(whole_json(message))
    if not is_object(message) or whole == message:
        return whole
    return Mended({name: message[name] if name == "id" else value for name, value in whole.items()})


def is_answer(message: dict[str, Any]) -> bool:
    """Return whether a message answers a request."""
    return "method" not in message and ("result" in message or "error" in message)


def answered_id(message: object) -> int:
    """Return the number of the request that a message answers, however badly it is formed; 0 if it is no response."""
    return own_id(request_id(message)) if is_object(message) and not isinstance(message.get("method"), str) else 0


def own_id(id_: object) -> int:
    """Return the number of a request of this side, 0 for another id; some peers send the number back as a text."""
    if isinstance(id_, str):
        return int(id_) if id_.isascii() and id_.isdecimal() and len(id_) < 19 else 0
    return id_ if type(id_) is int else 0


def request_id(message: dict[str, Any]) -> RequestId | None:
    """Return the id of a message if it is one: a string or an integer, never a boolean."""
    found = message.get("id")
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def invalid(reason: str, kind: type[ProtocolError] = ProtocolError) -> ProtocolError:
    """Make the error -32600 with a reason."""
    return kind(INVALID_REQUEST, f"Invalid request: {reason}")


def invalid_answer(reason: str) -> ProtocolError:
    """Make the error for an answer that is none, for the side that asked; it has the code of `invalid`."""
    return ProtocolError(INVALID_REQUEST, f"Invalid answer: {reason}")
