"""Put questions to a user or a model into the form of the protocol (MCP, "Elicitation", "Sampling", "Roots")."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, SchemaValidator, core_schema, to_json

from ..model.base import fields_of
from ..model.json_types import is_array
from ..model.validation import located
from ..protocol import bridging, jsonrpc
from ..protocol.errors import CapabilityMissing, InvalidParams, NotAnswered, ProtocolError, UnexpectedAnswer
from ..protocol.methods import ELICIT, RequestMethod, classes
from ..protocol.revision import Revision

_ANSWER = "answer"
"""The field of a form that asks for one value."""

_MEMBERS = {
    "boolean": {"default"},
    "integer": {"default", "minimum", "maximum"},
    "number": {"default", "minimum", "maximum"},
    "string": {"default", "enum", "format", "maxLength", "minLength"},
    "array": {"default", "items", "maxItems", "minItems"},
}
_PAGE = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_FORMATS = ("date", "date-time", "email", "uri")


def visit(revision: Revision, message: str, url: str, id: str | None) -> tuple[RequestMethod[Any, Any], Any]:
    """Return the method and the typed params that ask for a visit of a page.

    Raises:
        CapabilityMissing: The revision cannot ask for it.
        ValueError: The text is not the address of a page, which a client could open without harm.
    """
    if not _PAGE.fullmatch(url):
        raise ValueError(f"{url!r} is not the address of a page; use https://...")
    method = revision.methods.get(ELICIT)
    if isinstance(method, RequestMethod):
        for kind in classes(method.params):
            if "url" in fields_of(kind):
                own = {"elicitation_id": id or str(uuid4())} if "elicitation_id" in fields_of(kind) else {}
                return method, kind(message=message, url=url, **own)
    raise CapabilityMissing(ELICIT, ("client", "elicitation", "url"), revision.name)


def in_types_of(
    kind: type, wire: Revision, own: Mapping[type, object]
) -> tuple[Callable[..., Any], RequestMethod[Any, Any, Any]]:
    """Return the class of contexts that ask a client of `wire` with params of a class, and the method.

    Args:
        kind: The class, of the bindings of any revision.
        wire: The revision of the client.
        own: The classes of the handler's revision, for the error.

    Raises:
        TypeError: Params of this class ask nothing, or no conversion is installed.
    """
    try:
        bindings = import_module(kind.__module__.rpartition(".")[0])
        home, method = bindings.REVISION, bindings.Server.context.question_methods[kind]
    except (ImportError, ValueError, AttributeError, KeyError):
        fix = f"use {' or '.join(one.__name__ for one in own)}"
        raise TypeError(f"{kind.__name__} is not the type of a question's params; {fix}") from None
    return bridging.asking(home, wire), method


class Root(NamedTuple):
    """A directory or file that a user works in.

    Attributes:
        uri: Its `file://` URI.
        name: Its display name, if the client states one.
    """

    uri: str
    name: str | None = None


class Form:
    """The form that asks for a type: a field for each member of an object, or a single field.

    Args:
        kind: The type.

    Raises:
        TypeError: No form asks for it.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
            schema = self._adapter.json_schema()
        except PydanticUserError as error:
            raise self._unfit(str(error).partition("\n")[0]) from None
        definitions = schema.pop("$defs", {})
        record = _resolved(schema, definitions)
        self._is_record = record.get("type") == "object"
        members: dict[str, Any] = record.get("properties", {}) if self._is_record else {_ANSWER: schema}
        if not members:
            raise self._unfit("its members have no names")
        fields = {name: self._field(name, _resolved(one, definitions)) for name, one in members.items()}
        required: list[str] = record.get("required", []) if self._is_record else [_ANSWER]
        self._schema = {"type": "object", "properties": fields, **({"required": required} if required else {})}

    def params(self, method: RequestMethod[Any, Any], message: str, revision: str) -> Any:
        """Return the typed params of the question; raise `TypeError` if the forms of the revision lack something."""
        try:
            return jsonrpc.typed_params(method, {"message": message, "requestedSchema": self._schema})
        except (InvalidParams, ProtocolError, ValidationError):
            raise self._unfit(f"MCP {revision} has no such field") from None

    def read(self, message: str, result: Any) -> Any:
        """Return the answer in the type; raise `NotAnswered` if there is none."""
        if result.action == "decline" and self._kind is bool:
            return False
        if result.action != "accept":
            raise NotAnswered(message, result.action)
        given: dict[str, Any] = result.content or {}
        content = {name: _whole(value) for name, value in given.items()}
        data = to_json(content if self._is_record else content[_ANSWER])
        try:
            return self._adapter.validate_json(data, strict=True)
        except ValidationError as error:
            raise _invalid(message, error, data) from None

    def _field(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the field for a member, in the words that all forms have."""
        kind: Any = schema.get("type", "string" if "enum" in schema else None)
        choices = schema.get("items", {}) if kind == "array" else schema
        is_flat = kind in _MEMBERS and all(isinstance(one, str) for one in choices.get("enum", ()))
        if not is_flat or (kind == "array" and "enum" not in choices):
            raise self._unfit(f"{name!r} is neither text, number, boolean nor a choice of texts")
        field = {key: schema[key] for key in schema if key in _MEMBERS[kind] | {"title", "description"}}
        if field.get("format", "date") not in _FORMATS:
            del field["format"]
        if "items" in field:
            field["items"] = {"type": "string", "enum": choices["enum"]}
        return {"type": kind, **field}

    def _unfit(self, reason: str) -> TypeError:
        return TypeError(f"a form cannot ask for {getattr(self._kind, '__name__', self._kind)}: {reason}")


def check_answer(params: Any, answer: Any) -> None:
    """Check the answer to a form against the schema that the form was requested with (MCP, "Elicitation").

    Args:
        params: The typed params of the request.
        answer: The typed result.

    Raises:
        NotAnswered: The user accepted, and the content does not fit the schema.
    """
    if answer.action != "accept":
        return
    form = jsonrpc.plain(params.requested_schema)
    required = form.get("required", ())
    readers = {name: core_schema.any_schema() for name in required}
    readers |= {name: _reader(field) for name, field in form["properties"].items()}
    fields = {name: core_schema.typed_dict_field(reader, required=name in required) for name, reader in readers.items()}
    given: dict[str, Any] = answer.content or {}
    data = to_json({name: _whole(value) for name, value in given.items()})
    try:
        SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="ignore")).validate_json(data, strict=True)
    except ValidationError as error:
        raise _invalid(params.message, error, data) from None


def _invalid(message: str, error: ValidationError, data: bytes) -> NotAnswered:
    """Return the error for an answer that does not fit; it names the first field that is wrong."""
    steps, problem = next(located(error, data))
    return NotAnswered(message, "invalid", f"{'.'.join(steps) or _ANSWER}: {problem}")


def _reader(field: Mapping[str, Any]) -> CoreSchema:
    """Return the schema that validates the values of a field of a form."""
    options = field.get("enum") or [one["const"] for one in field.get("oneOf", field.get("anyOf", ()))]
    if options:
        return core_schema.literal_schema(options)
    match field.get("type"):
        case "boolean":
            return core_schema.bool_schema()
        case "integer":
            low, high = field.get("minimum"), field.get("maximum")
            return core_schema.int_schema(
                ge=None if low is None else math.ceil(low), le=None if high is None else math.floor(high)
            )
        case "number":
            return core_schema.float_schema(ge=field.get("minimum"), le=field.get("maximum"))
        case "array":
            items = _reader(field["items"])
            return core_schema.list_schema(items, min_length=field.get("minItems"), max_length=field.get("maxItems"))
        case _:
            return core_schema.str_schema(min_length=field.get("minLength"), max_length=field.get("maxLength"))


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references and constants, and without `null` beside something else."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return _resolved({**definitions[name], **{key: schema[key] for key in schema if key != "$ref"}}, definitions)
    if "anyOf" in schema:
        others = [one for one in schema["anyOf"] if one.get("type") != "null"]
        if len(others) == 1:
            outer = {key: one for key, one in schema.items() if key != "anyOf" and (key, one) != ("default", None)}
            return _resolved({**others[0], **outer}, definitions)
    if "const" in schema:
        return {**{key: schema[key] for key in schema if key != "const"}, "enum": [schema["const"]]}
    return {**schema, "items": _resolved(schema["items"], definitions)} if "items" in schema else schema


def _whole(value: object) -> Any:
    """Return a number without a fraction as an integer: JSON Schema makes no difference."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def sampling_params(
    method: RequestMethod[Any, Any], prompt: str, max_tokens: int, system_prompt: str | None, temperature: float | None
) -> Any:
    """Return the typed params for one prompt to a model."""
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    wire = {"messages": [message], "maxTokens": max_tokens, "systemPrompt": system_prompt, "temperature": temperature}
    return jsonrpc.typed_params(method, {name: value for name, value in wire.items() if value is not None})


def text_of(method: RequestMethod[Any, Any], result: Any) -> str:
    """Return the text of a model's message; raise `UnexpectedAnswer` if it has none."""
    content: Any = result.content
    blocks: list[Any] = content if is_array(content) else [content]
    texts = [block.text for block in blocks if block.type == "text"]
    if not texts:
        raise UnexpectedAnswer(method.name, result)
    return "\n".join(texts)
