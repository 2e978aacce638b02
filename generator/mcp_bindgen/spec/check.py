"""Check a published schema: all keywords are known, and their values have the right types."""

from __future__ import annotations

import json
from typing import Any

from mcp_bindgen.json_schema.keywords import NESTING, PROSE

from . import kinds
from .diagnostics import DiagnosticContext
from .errors import BadInput
from .idioms import plain
from .json import JSON_TYPES, is_array, is_object, join, listed
from .keywords import KNOWN, STRUCTURE, Schema, rebuild

MAX_DEPTH = 100
"""Maximum depth of a schema, and of a chain of aliases: the passes recurse. MCP schemas have a depth of 12, and chains
of 3."""

_KINDS = {**STRUCTURE, "description": kinds.TEXT}

_UNCHECKED = NESTING | PROSE
"""Keywords whose values are checked elsewhere, or may be any text."""

_RELIES = {"additionalProperties": ("properties", "patternProperties"), "items": ("prefixItems",)}
"""Keyword -> keywords that restrict its scope; without them it would accept less."""


def check_depth(document: Any) -> None:
    """Raise `BadInput` for a document so deep that recursion could exhaust the stack."""
    if is_too_deep(document):
        raise BadInput("is nested too deeply to be a schema", fix="give a JSON Schema file")


def is_too_deep(value: Any) -> bool:
    """Return whether a JSON value is nested deeper than `MAX_DEPTH`."""
    inside: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [node for node in inside if is_object(node) or is_array(node)]
        inside = [child for node in level for child in (node.values() if is_object(node) else node)]
        if not inside:
            return False
    return True


def check_definition(definition: Any, top: str, context: DiagnosticContext, *, legacy: bool) -> Schema:
    """Check every schema of a definition.

    Args:
        definition: The definition.
        top: Pointer to the definition.
        context: Reports broken rules.
        legacy: True for draft-07, in which a reference hides its siblings.

    Returns:
        The definition. Lenient mode omits unreadable keywords, so that it accepts no less.

    Raises:
        BadInput: The name or a value has a lone surrogate. In strict mode also: a keyword is unknown, has a value
            of the wrong kind, or is not supported in combination with another keyword.
    """
    _check_characters(top, top)
    if not is_object(definition):
        context.report("definition-kind", top)
        return {}
    return _checked(definition, top, context, legacy)


def _checked(schema: Schema, here: str, context: DiagnosticContext, legacy: bool) -> Schema:
    kept: Schema = {}
    for keyword, value in plain(schema).items():
        at = join(here, keyword)
        if _is_readable(keyword, value, at, context):
            kept[keyword] = _value(keyword, value, at, context)
    for keyword, others in _RELIES.items():
        if any(other in schema and other not in kept for other in others):
            kept.pop(keyword, None)
    kept = rebuild(kept, lambda child, at: _checked(child, at, context, legacy), here)
    return _reference_alone(kept, here, context) if "$ref" in kept and not legacy else kept


def _is_readable(keyword: str, value: Any, at: str, context: DiagnosticContext) -> bool:
    if keyword not in KNOWN and not keyword.startswith("x-") and ":" not in keyword:  # such as `meta:enum` of tools
        context.report("keyword-unknown", at, keyword=keyword)
        return False
    if keyword not in _UNCHECKED:
        _check_characters(keyword, at)
        _check_characters(value, at)
    if keyword in _KINDS and not (kind := _KINDS[keyword]).fits(value):
        context.report("keyword-kind", at, name=keyword, kind=kind.description)
        return False
    unknown = [name for name in listed(value) if name not in JSON_TYPES] if keyword == "type" else []
    for name in unknown:
        context.report("type-unknown", at, name=name, known=", ".join(sorted(JSON_TYPES)))
    return not unknown


def _value(keyword: str, value: Any, at: str, context: DiagnosticContext) -> Any:
    """Return the value of a keyword, with checked subschemas."""
    if keyword == "properties":
        return {name: _schema(member, name, join(at, name), context) for name, member in value.items()}
    if keyword in ("anyOf", "oneOf", "allOf"):
        return [_schema(member, str(index), join(at, index), context) for index, member in enumerate(value)]
    return value


def _schema(value: Any, name: str, at: str, context: DiagnosticContext) -> Any:
    _check_characters(name, at)
    if not kinds.SCHEMA.fits(value):
        context.report("schema-kind", at, name=name, kind=kinds.SCHEMA.description)
        return True
    return value


def _check_characters(value: Any, at: str) -> None:
    """Raise `BadInput` for lone surrogates: they cannot be written as UTF-8."""
    try:
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
    except UnicodeEncodeError:
        raise BadInput("has half of a character", pointer=at, fix="write the whole surrogate pair") from None


def _reference_alone(schema: Schema, here: str, context: DiagnosticContext) -> Schema:
    beside = {keyword: schema[keyword] for keyword in STRUCTURE if keyword in schema and keyword != "$ref"}
    if not beside:
        return schema
    context.report("beside-reference", here, keyword=next(iter(beside)))
    rest = {keyword: value for keyword, value in schema.items() if keyword not in beside and keyword != "$ref"}
    parts = [{"$ref": schema["$ref"]}, *beside.pop("allOf", []), *([beside] if beside else [])]
    return {**rest, "allOf": parts}
