"""Read and write JSON-RPC 2.0 messages, each in a single pass over its bytes.

Reading peeks at the bytes to guess the kind of a message and lets pydantic-core validate the guess, envelope and params
at once; a wrong guess fails there and takes the slow way. Writing joins bytes around the output of pydantic-core.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaSerializer, core_schema, from_json, to_json

from ..logs import log
from ..model.base import fields_filled_in, wire_name
from ..model.json_types import is_object, whole_json
from .envelope import RequestId, invalid_answer
from .errors import ProtocolError
from .extension import ExtensionResult
from .methods import Method, RequestMethod, result_type
from .routing import Route, WrongResult, record

METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]{1,128})"')
ANSWER = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,\s*"result"\s*:')
ASKED = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,\s*"method"\s*:')

_PEEK = 512


# --- reading --------------------------------------------------------------------------------------------------


def peek_method(data: bytes) -> str | None:
    """Guess the method that `data` names; where that is wrong, the validator of that method rejects the message."""
    found = METHOD.search(data, 0, _PEEK)
    return found[1].decode("utf-8", "replace") if found else None


def peek_answer(data: bytes) -> int | None:
    """Return the id that `data` answers, if it is a result in the usual form."""
    found = ANSWER.match(data)
    return int(found[1]) if found else None


def peek_request(data: bytes) -> int | None:
    """Return the id under which `data` asks, if it is a request in the usual form."""
    found = ASKED.match(data)
    return int(found[1]) if found else None


@cache
def answer_reader(method: RequestMethod[Any, Any]) -> TypeAdapter[dict[str, Any]]:
    """Return the reader of a whole response to one method."""
    return record("Answer", {"jsonrpc": Literal["2.0"], "id": int | str, "result": _answers(method)})


@cache
def result_reader(method: RequestMethod[Any, Any]) -> TypeAdapter[Any]:
    """Return the reader of a result alone."""
    return TypeAdapter(_answers(method))


def _answers(method: RequestMethod[Any, Any]) -> Any:
    if not method.alternatives:
        return method.result
    kinds = {result_type(kind): kind for kind in method.answers}
    if None not in kinds and len(kinds) == len(method.answers):
        return Annotated[Any, _ByResultType(kinds)]
    answers: Any = method.result
    for alternative in method.alternatives:
        answers = answers | alternative
    return Annotated[answers, Field(union_mode="left_to_right")]


class _ByResultType:
    """Reads a result as the type that its `resultType` names, and no other; a type that is not known is invalid."""

    def __init__(self, kinds: Mapping[Any, type[Any]]) -> None:
        self._kinds = kinds

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        choices = {name: handler.generate_schema(kind) for name, kind in self._kinds.items()}
        return core_schema.tagged_union_schema(choices, "resultType")


def read_params(route: Route, message: dict[str, Any]) -> Any:
    """Read the typed params of a message that was parsed the slow way; raises `InvalidParams`."""
    is_absent = message.get("params") is None and not (route.method.params_required and "params" in message)
    return route.read(None if is_absent else to_json(message["params"]))  # some peers send null for no params


def typed_params(method: Method, wire: dict[str, Any]) -> Any:
    """Return the params of a method from their wire form."""
    return _writer(method.params).validate_json((to_json if isinstance(method, RequestMethod) else write_result)(wire))


def typed_result(method: RequestMethod[Any, Any], wire: object) -> Any:
    """Return the result of a method from its wire form; raise `ProtocolError` when it is none.

    Constructor defaults may be missing: older servers leave `resultType` out (MCP 2026-07-28, "Overview").
    """
    reader = result_reader(method)
    with suppress(ValidationError):  # one of the alternatives, too, which must not be filled in
        return reader.validate_json(write_result(wire))
    data = write_result({**filled_in(method.result), **wire} if is_object(wire) else wire)
    try:
        return reader.validate_json(data)
    except ValidationError as error:
        from ..model.validation import located  # few results are invalid

        steps, problem = next(located(error, data))
        place = ".".join(["result", *steps])
        raise invalid_answer(f"the result of {method.name} is not valid: {place}: {problem}") from None


def filled_in(kind: object) -> dict[str, Any]:
    """Return the constructor defaults of a model, in wire form; nothing for other types."""
    return {field.alias or wire_name(name): field.default for name, field in fields_filled_in(kind).items()}


# --- writing --------------------------------------------------------------------------------------------------


@cache
def _writer(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def write_params(method: Method, params: object) -> bytes:
    """Return the JSON text of params."""
    serializer = getattr(params, "__pydantic_serializer__", None)
    return serializer.to_json(params) if serializer is not None else _writer(method.params).dump_json(params)


class Written(bytes):
    """A result that is JSON text already."""


_ANY = SchemaSerializer(core_schema.any_schema(), {"ser_json_inf_nan": "constants"})


def write_result(result: object, serializer: SchemaSerializer | None = None, **options: Any) -> bytes:
    """Return the JSON text of a result, a model of ours or any JSON value; U+FFFD replaces halves of surrogate pairs.

    Args:
        result: The result.
        serializer: Its serializer; by default that of its class.
        options: Options of the serializer.

    Raises:
        ValueError: The value has no JSON form.
    """
    if type(result) is Written:
        return result
    writer: SchemaSerializer = getattr(result, "__pydantic_serializer__", _ANY) if serializer is None else serializer
    try:
        return writer.to_json(result, **options)
    except PydanticSerializationError as error:
        if "surrogates not allowed" not in str(error):
            raise
    log.warning("U+FFFD is sent in place of half of a character, as in the name of a file that is not UTF-8")
    try:
        return whole_json(writer.to_python(result, mode="json", **options))
    except UnicodeEncodeError:  # from a key
        return whole_json(writer.to_python(result, **options))


def check_kind(method: Method, result: object, handler: Callable[..., Any]) -> None:
    """Check that a handler returned a result of its method, typed or in wire form.

    A model of another revision counts as its wire form; results of extensions are for classes that have them.

    Args:
        method: The method.
        result: The returned value.
        handler: The handler, for the error.

    Raises:
        WrongResult: It is not; the error has file and line of the handler.
    """
    if not isinstance(method, RequestMethod):
        return
    classes = method.answers
    if None not in method.result_types:
        named = result_type_of(result)
        if named is not None and named not in method.result_types:
            raise WrongResult(f"the handler of {method.name} returned a result of an unknown type: {named!r}", handler)
    if not classes or type(result) in classes or isinstance(result, (*classes, Written, dict)):
        return
    modules = {kind.__module__ for kind in classes}
    is_model = isinstance(result, BaseModel) and type(result).__module__ not in modules
    is_foreign = is_model and not isinstance(result, ExtensionResult)
    if not is_foreign:
        returned = "nothing" if result is None else type(result).__name__
        problem = f"returned {returned}, expected {' or '.join(kind.__name__ for kind in classes)}"
        raise WrongResult(f"the handler of {method.name} {problem}", handler)


def result_type_of(result: object) -> str | None:
    """Return the `resultType` of a result, typed or in wire form."""
    found: str | None = result.get("resultType") if is_object(result) else getattr(result, "result_type", None)
    return found


def plain(value: Any) -> Any:
    """Return the wire form of a model, as Python's dicts and lists."""
    return from_json(write_result(value))


def request(id_: RequestId, method: Method, params: object) -> bytes:
    """Return a request as JSON text."""
    head = b'{"jsonrpc":"2.0","id":%b,"method":%b' % (to_json(id_), to_json(method.name))
    return head + (b"}" if params is None else b',"params":' + write_params(method, params) + b"}")


def notification(method: Method, params: object) -> bytes:
    """Return a notification as JSON text."""
    head = b'{"jsonrpc":"2.0","method":' + to_json(method.name)
    return head + (b"}" if params is None else b',"params":' + write_result(params) + b"}")


def response(id_: RequestId, result: object) -> bytes:
    """Return a response with a result as JSON text."""
    written = result if type(result) is Written else write_result(result)
    return b'{"jsonrpc":"2.0","id":' + to_json(id_) + b',"result":' + written + b"}"


def failure(id_: RequestId | None, error: ProtocolError) -> bytes:
    """Return a response with an error as JSON text; without an id where none could be read."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    id_member = "" if id_ is None else f'"id":{json.dumps(id_)},'  # escapes half of a surrogate pair
    return b'{"jsonrpc":"2.0",%b"error":%b}' % (id_member.encode(), write_result(body))
