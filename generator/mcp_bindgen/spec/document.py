"""Reading a schema file as published: strict JSON, one dialect, every reference checked."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from . import pointer as json_pointer
from .errors import BadInput
from .json import is_object, listed
from .keywords import KNOWN, Schema, children, rebuild, walk

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LEGACY = "#/definitions/"
_PREFIX = "#/$defs/"
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_SHAPES: dict[str, type | tuple[type, ...]] = {
    "$ref": str,
    "type": (str, list),
    "enum": list,
    "properties": dict,
    "required": list,
    "additionalProperties": (dict, bool),
    "items": (dict, bool),
    "anyOf": list,
    "oneOf": list,
    "allOf": list,
}


def read(path: Path) -> tuple[Schema, str]:
    """Reads a schema file and normalises its dialect.

    Returns:
        The document as `{"$schema": ..., "$defs": {...}}` with its prose, and the sha256 of the file's bytes.

    Raises:
        BadInput: The file cannot be read, is not JSON, is not a schema, uses a keyword whose meaning would be
            lost, or refers to a definition that is missing or that leads only back to itself.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give the path of a schema file") from None
    try:
        return normalise(_parse(raw)), sha256(raw).hexdigest()
    except BadInput as error:
        raise error.located(path) from None


def _parse(raw: bytes) -> Any:
    try:
        return json.loads(raw, object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 (byte {error.start})", fix="save it as UTF-8 JSON") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadInput(f"is not JSON: {error.msg} at {where}", fix="give a JSON Schema file") from None
    except RecursionError:
        raise BadInput("is nested too deeply to be a schema", fix="give a JSON Schema file") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the member {twice!r} stands twice in one object", fix="remove one of them")
    return result


def _refuse(constant: str) -> Any:
    raise BadInput(f"{constant} is not JSON", fix="use a finite number or a string")


def normalise(document: Any) -> Schema:
    """`document` (draft-07 or 2020-12) as a 2020-12 schema with `$defs`, checked; prose is kept.

    Raises:
        BadInput: As `read`, without the file's name.
    """
    if not is_object(document):
        raise BadInput("is JSON but not a schema: the top is not an object", fix="give a JSON Schema file")
    key = "$defs" if "$defs" in document else "definitions"
    definitions = document.get(key)
    if not is_object(definitions) or not definitions:
        raise BadInput(
            "is JSON but not an MCP schema: it has neither '$defs' nor 'definitions'",
            fix="give the schema.json of a protocol revision",
        )
    legacy = key == "definitions"
    checked: dict[str, Schema] = {}
    for name, definition in definitions.items():
        top = json_pointer.join(f"/{key}", name)
        if not is_object(definition):
            raise BadInput("a definition must be an object", pointer=top, fix="write it as a schema")
        _check(definition, top, legacy)
        checked[name] = _translate(definition) if legacy else definition
    _check_references(checked)
    return {"$schema": DIALECT, "$defs": checked}


def _check(definition: Schema, top: str, legacy: bool) -> None:
    pending = [(top, definition)]
    while pending:
        here, node = pending.pop()
        for keyword, value in node.items():
            at = json_pointer.join(here, keyword)
            if keyword not in KNOWN and not keyword.startswith("x-"):
                raise BadInput(
                    f"the keyword {keyword!r} would change the meaning and is not supported",
                    pointer=at,
                    fix="express it with the keywords that MCP schemas use, or drop it with a patch",
                )
            if keyword in _SHAPES and not isinstance(value, _SHAPES[keyword]):
                raise BadInput(f"{keyword!r} has a value of the wrong kind", pointer=at, fix="see JSON Schema 2020-12")
        for name in listed(node.get("type", [])):
            if name not in _TYPES:
                raise BadInput(f"{name!r} is not a JSON type", pointer=json_pointer.join(here, "type"))
        if "$ref" in node and not legacy:
            beside = sorted(keyword for keyword in node if keyword in _SHAPES and keyword != "$ref")
            if beside:
                raise BadInput(
                    f"{beside[0]!r} beside '$ref' is not supported", pointer=here, fix="combine the two with 'allOf'"
                )
        pending.extend(children(node, here))


def _translate(schema: Schema) -> Schema:
    """Draft-07 to 2020-12: references are renamed and, as draft-07 says, hide what stands beside them."""
    if "$ref" in schema:
        prose = {keyword: schema[keyword] for keyword in schema if keyword == "description"}
        return {"$ref": schema["$ref"].replace(_LEGACY, _PREFIX, 1), **prose}
    return rebuild(schema, _translate)


def target(reference: str) -> str:
    """The definition that `#/$defs/NAME` refers to."""
    return json_pointer.split(reference[1:])[1]


def _check_references(definitions: dict[str, Schema]) -> None:
    for name, definition in definitions.items():
        for here, node in walk(definition, json_pointer.join("/$defs", name)):
            if "$ref" not in node:
                continue
            reference: str = node["$ref"]
            local = reference.startswith(_PREFIX) and len(json_pointer.split(reference[1:])) == 2
            if not local or target(reference) not in definitions:
                raise BadInput(
                    f"the reference {reference!r} leads nowhere",
                    pointer=here,
                    fix="refer to an entry of '$defs' in the same file",
                )
    for name in definitions:
        _check_grounded(name, definitions, ())


def _check_grounded(name: str, definitions: dict[str, Schema], trail: tuple[str, ...]) -> None:
    """A definition may contain itself below a property or an item, but it may not *be* itself."""
    if name in trail:
        cycle = " -> ".join((*trail[trail.index(name) :], name))
        raise BadInput(
            f"the references go in a circle: {cycle}",
            pointer=json_pointer.join("/$defs", name),
            fix="break the circle with an object or an array",
        )
    node = definitions[name]
    same = [node, *(member for keyword in ("anyOf", "oneOf", "allOf") for member in node.get(keyword, ()))]
    for member in same:
        if is_object(member) and "$ref" in member:
            _check_grounded(target(member["$ref"]), definitions, (*trail, name))
