"""Which request a message answers, as far as a transport must know."""

from __future__ import annotations

import re

from pydantic_core import to_json

from ...core import jsonrpc
from ...core.envelope import parse, request_id
from ...core.errors import ProtocolError
from ...core.json_types import is_array, is_object
from ...core.transport import Oversized

_NO_ANSWER = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:')


def answers(message: bytes | Oversized, id_: int) -> bool:
    """Whether a message, or one of a batch, is the response to a request of ours."""
    data = message.head if isinstance(message, Oversized) else message
    quick = jsonrpc.peek_answer(data)
    if quick is not None:
        return quick == id_
    if _NO_ANSWER.match(data):
        return False
    try:
        parsed = parse(data)
    except ProtocolError:
        return False
    parts = parsed if is_array(parsed) else [parsed]
    return any(is_object(part) and "method" not in part and request_id(part) == id_ for part in parts)


def adopt(data: bytes, id_: int) -> bytes | None:
    """An error that came where a request is answered, with the id of that request in place of whatever it has.

    Servers that refuse a request before they read it have no id to put there.
    """
    try:
        parsed = parse(data)
    except ProtocolError:
        return None
    if (
        not is_object(parsed)
        or parsed.get("jsonrpc") != "2.0"
        or "method" in parsed
        or not is_object(parsed.get("error"))
    ):
        return None
    return to_json({**parsed, "id": id_})
