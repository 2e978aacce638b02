"""The texts of a contract that a model or a host reads: everything but names and the conditions of schemas.

A change of a text can steer a model, under any keyword. So the names of machines are listed here, and all other
texts count, also those of unknown keywords.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

from mcp_bindgen.app.catalog import Entry, Kind
from mcp_bindgen.runtime.model.json_types import is_array, is_object

Text: TypeAlias = tuple[str, str]
"""Place in the entry, such as `inputSchema.city.description`, and the text, as JSON unless it is a string."""

_PLAIN = re.compile(r"[!-~]{0,64}")
"""Names for machines: visible ASCII without spaces."""

_SCHEMAS = ("inputSchema", "outputSchema")
_VOLATILE = {"resource": frozenset({"size", "mimeType"}), "template": frozenset({"mimeType"})}
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_NESTED: Set[str] = {
    *("allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "additionalProperties", "contains"),
    *("contentSchema", "else", "if", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
}
_CONDITIONS: Set[str] = {
    *("$ref", "$schema", "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "type", "enum"),
    *("const", "format", "pattern", "required", "dependentRequired", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("minContains", "maxContains", "minProperties", "maxProperties", "contentEncoding", "contentMediaType"),
}
"""Keywords with conditions as values; names in them are no texts."""


def texts(kind: Kind, entry: Entry) -> Iterator[Text]:
    """Yield the texts of an entry with their places."""
    for member, value in entry.items():
        if kind == "tool" and member in _SCHEMAS:
            yield from _of_schema(member, value)
        elif kind == "prompt" and member == "arguments":
            yield from _of_arguments(value)
        elif member not in _VOLATILE.get(kind, ()):
            yield member, _written(_lasting(value) if kind == "resource" and member == "annotations" else value)


def changed_texts(kind: Kind, old: Entry, new: Entry) -> list[tuple[str, list[str], list[str]]]:
    """Return the places with different texts, each with the old and the new texts that the other side lacks."""
    before, after = Counter(texts(kind, old)), Counter(texts(kind, new))
    gone, come = before - after, after - before
    places = dict.fromkeys(place for place, _ in (*gone, *come))
    return [
        (place, *([text for (at, text) in side.elements() if at == place] for side in (gone, come)))  # type: ignore[misc]
        for place in places
    ]


def _lasting(value: object) -> Any:
    """Return the annotations of a resource without the time of its last change."""
    return {key: one for key, one in value.items() if key != "lastModified"} if is_object(value) else value


def _of_arguments(value: object) -> Iterator[Text]:
    for one in value if is_array(value) else [value]:
        if not is_object(one):
            yield "arguments", _written(one)
            continue
        for member, words in one.items():
            if member not in ("name", "required"):
                yield f"arguments.{one.get('name')}.{member}", _written(words)
        yield from _if_prose("arguments", one.get("name"))


def _of_schema(place: str, node: object) -> Iterator[Text]:
    if is_array(node):
        for child in node:
            yield from _of_schema(place, child)
    if not is_object(node):
        return
    root = place.partition(".")[0]  # names may move to definitions
    for keyword, value in node.items():
        here = f"{place}.{keyword}"
        if keyword in _MAPS and is_object(value):
            for name, child in value.items():
                yield from _if_prose(root, name)
                yield from _of_schema(f"{place}.{name}", child)
        elif keyword in _NESTED:
            yield from _of_schema(place if keyword in ("allOf", "anyOf", "oneOf") else here, value)
        elif keyword in _CONDITIONS:
            yield from (text for name in _names(value) for text in _if_prose(root, name))
        else:
            yield here, _written(value)


def _names(value: object) -> Iterator[Any]:
    """Yield the scalars in the value of a condition."""
    if is_array(value):
        for one in value:
            yield from _names(one)
    elif is_object(value):
        for name, one in value.items():
            yield name
            yield from _names(one)
    else:
        yield value


def _if_prose(place: str, name: object) -> Iterator[Text]:
    """Yield a name, if it may be read as prose."""
    if isinstance(name, str) and _PLAIN.fullmatch(name) is None:
        yield place, name


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def texts_of_server(info: Mapping[str, Any], instructions: str | None) -> dict[str, str]:
    """Return the texts of a server by place; name and version are its identity."""
    found = {f"serverInfo.{key}": _written(one) for key, one in info.items() if key not in ("name", "version")}
    return found if instructions is None else {**found, "instructions": instructions}
