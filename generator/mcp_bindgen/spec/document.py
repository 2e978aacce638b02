"""Read published schema files: strict JSON, one dialect, checked references."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from . import sources
from .check import check_definition, check_depth
from .diagnostics import DiagnosticContext
from .errors import BadInput, locating
from .idioms import has_root, lifted, placed
from .json import is_object, join, parse
from .keywords import DIALECT, PREFIX, Schema, rebuild
from .references import follow, ground
from .sources import Readable

_LEGACY = "#/definitions/"


def read(file: Readable, context: DiagnosticContext | None = None) -> tuple[Schema, str]:
    """Read a schema file and normalise its dialect.

    Args:
        file: The file.
        context: Reports broken rules; by default they are errors.

    Returns:
        The document as `{"$schema": ..., "$defs": {...}}` with its prose, and the sha256 of the file's bytes.

    Raises:
        BadInput: The file cannot be read, is not JSON, or is not a schema. In strict mode also: it has an
            unsupported keyword, or a reference to a missing definition or only to itself.
    """
    source = sources.read(file)
    document, sha = load(source)
    with locating(source.label):
        return normalise(document, context), sha


def load(file: Readable) -> tuple[Any, str]:
    """Return the JSON document in a schema file, and the sha256 of the file's bytes; raise `BadInput` as `read`."""
    source = sources.read(file)
    with locating(source.label):
        try:
            text = source.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(f"is not UTF-8 (byte {error.start})", fix="save it as UTF-8 JSON") from None
        return parse(text, "schema", "give a JSON Schema file"), sha256(source.content).hexdigest()


def normalise(
    document: Any, context: DiagnosticContext | None = None, known: Mapping[str, Schema] | None = None
) -> Schema:
    """Return `document` (draft-07 or 2020-12) as a 2020-12 schema with `$defs`, checked; prose is kept.

    Args:
        document: The JSON document.
        context: Reports broken rules; by default they are errors.
        known: Further definitions, normalised already, that the document may refer to and that the result has too. They
            refer to each other and to names in the document only.

    Raises:
        BadInput: As `read`, without the name of the file.
    """
    context = context or DiagnosticContext()
    check_depth(document)
    if not is_object(document):
        raise BadInput("is JSON but not a schema: the top is not an object", fix="give a JSON Schema file")
    key = "$defs" if "$defs" in document else "definitions"
    definitions = document.get(key, {})
    known = known or {}
    if not is_object(definitions) or not (known or definitions or has_root(document)):
        raise BadInput(
            "is JSON but not an MCP schema: it has neither '$defs' nor 'definitions'",
            fix="give the schema.json of a protocol revision",
        )
    legacy = key == "definitions"
    context.root, context.document = f"/{key}", document
    checked: dict[str, Schema] = {}
    whole, places = (definitions, dict[str, str]()) if legacy else lifted({**known, **definitions})
    whole = placed(document, key, whole, places)
    for name, pointer in places.items():
        context.moved(name, pointer)
    for name, definition in whole.items():
        if name in known:
            checked[name] = definition
            continue
        at = places.get(name, join(context.root, name))
        readable = check_definition(definition, at, context, legacy=legacy)
        checked[name] = _translate(readable) if legacy else readable
    return {"$schema": DIALECT, "$defs": ground(follow(checked, context, known), context)}


def normalise_again(changed: Schema, before: Schema) -> Schema:
    """Return a normalised schema whose definitions were partly replaced since; only these are checked again."""
    definitions: dict[str, Schema] = changed["$defs"]
    is_whole = before["$defs"].keys() <= definitions.keys()
    known = {name: schema for name, schema in definitions.items() if is_whole and schema is before["$defs"].get(name)}
    replaced = {name: schema for name, schema in definitions.items() if name not in known}
    return normalise({**changed, "$defs": replaced}, known=known)


def _translate(schema: Schema, _: str = "") -> Schema:
    """Translate draft-07 to 2020-12: references are renamed and, as in draft-07, hide their siblings."""
    if "$ref" in schema:
        prose = {keyword: schema[keyword] for keyword in schema if keyword == "description"}
        return {"$ref": schema["$ref"].replace(_LEGACY, PREFIX, 1), **prose}
    return rebuild(schema, _translate)
