"""Read a schema file as published: strict JSON, one dialect, every reference checked."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from typing import Any

from . import pointer as json_pointer
from . import sources
from .check import DEEPEST, check_definition, check_depth
from .errors import BadInput, locating
from .json import is_object, parse
from .keywords import Schema, rebuild, walk
from .sources import Readable

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LEGACY = "#/definitions/"
_PREFIX = "#/$defs/"


def read(file: Readable) -> tuple[Schema, str]:
    """Read a schema file and normalise its dialect.

    Returns:
        The document as `{"$schema": ..., "$defs": {...}}` with its prose, and the sha256 of the file's bytes.

    Raises:
        BadInput: The file cannot be read, is not JSON, is not a schema, uses a keyword whose meaning would be
            lost, or refers to a definition that is missing or that leads only back to itself.
    """
    source = sources.read(file)
    with locating(source.label):
        try:
            text = source.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(f"is not UTF-8 (byte {error.start})", fix="save it as UTF-8 JSON") from None
        return normalise(parse(text, "schema", "give a JSON Schema file")), sha256(source.content).hexdigest()


def normalise(document: Any) -> Schema:
    """Return `document` (draft-07 or 2020-12) as a 2020-12 schema with `$defs`, checked; prose is kept.

    Raises:
        BadInput: As `read`, without the file's name.
    """
    check_depth(document)
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
        check_definition(definition, top, legacy=legacy)
        checked[name] = _translate(definition) if legacy else definition
    _check_references(checked)
    return {"$schema": DIALECT, "$defs": checked}


def _translate(schema: Schema) -> Schema:
    """Translate draft-07 to 2020-12: references are renamed and, as draft-07 says, hide what stands beside them."""
    if "$ref" in schema:
        prose = {keyword: schema[keyword] for keyword in schema if keyword == "description"}
        return {"$ref": schema["$ref"].replace(_LEGACY, _PREFIX, 1), **prose}
    return rebuild(schema, _translate)


def target(reference: str) -> str:
    """Return the definition that `#/$defs/NAME` refers to."""
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
    _check_grounded(definitions)


def _check_grounded(definitions: dict[str, Schema]) -> None:
    """Return a definition may contain itself below a property or an item, but it may not *be* itself."""
    graph = {name: list(_same(definition)) for name, definition in definitions.items()}
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(graph).static_order():
            depths[name] = 1 + max((depths[other] for other in graph[name]), default=0)
            if depths[name] > DEEPEST:
                raise BadInput(
                    "refers to a definition that refers to another, and so on, too often",
                    pointer=json_pointer.join("/$defs", name),
                    fix="refer to the last one",
                )
    except CycleError as error:
        *cycle, _ = reversed(error.args[1])  # it says "is referred to by", we say "refers to"
        start = cycle.index(min(cycle))
        cycle = cycle[start:] + cycle[:start]
        raise BadInput(
            f"the references go in a circle: {' -> '.join([*cycle, cycle[0]])}",
            pointer=json_pointer.join("/$defs", cycle[0]),
            fix="break the circle with an object or an array",
        ) from None


def _same(schema: Schema) -> Iterator[str]:
    """Return the definitions that a value of `schema` may be a value of as a whole."""
    if "$ref" in schema:
        yield target(schema["$ref"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        for member in schema.get(keyword, ()):
            if is_object(member):
                yield from _same(member)
