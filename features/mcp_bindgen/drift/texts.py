"""Changed texts of entries and servers: names, descriptions, hints and instructions, which steer models and hosts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from mcp_bindgen.app.catalog import Entry, Kind
from mcp_bindgen.json_schema.keywords import NAMED, NESTING, NOTES, VALUES
from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .snapshot import Snapshot

# A change of a text can steer a model, under any keyword, and so can a new name. So the words of JSON Schema and the
# members that change all the time are listed here, and all other texts count, also those of unknown keywords.

Text: TypeAlias = tuple[str, str]
"""Place in the entry, such as `inputSchema.city.description`, and the text, as JSON unless it is a string."""

TextChange: TypeAlias = tuple[str, Sequence[str], Sequence[str]]
"""Place, old texts and new texts."""

_MEDIA_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[A-Za-z0-9.+-]{1,80}"
    r"(?:; ?(?:charset|profile|version)=[A-Za-z0-9.-]{1,20})?"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9:]{2,5})?)?"
)
_SIZE = re.compile(r"[0-9]+")

_SCHEMAS = ("inputSchema", "outputSchema")
_NAMES = frozenset({*_SCHEMAS, "arguments"})
"""Places of names; only new ones count."""
_VOLATILE = {"resource": {"size": _SIZE, "mimeType": _MEDIA_TYPE}, "template": {"mimeType": _MEDIA_TYPE}}
"""Members that may change as long as they have their form."""
_WORDS: Set[str] = {
    *("string", "number", "integer", "boolean", "null", "object", "array"),
    *(f"https://json-schema.org/draft/{one}/schema" for one in ("2019-09", "2020-12")),
    *(f"http://json-schema.org/draft-0{one}/schema{end}" for one in "467" for end in ("", "#")),
}
"""Types and dialects of JSON Schema."""
_CONDITIONS = VALUES - NOTES | {"$schema"}
"""Keywords with conditions as values; names in them are no texts."""


def texts(kind: Kind, entry: Entry) -> Iterator[Text]:
    """Yield the texts of an entry with their places."""
    for member, value in entry.items():
        if kind == "tool" and member in _SCHEMAS:
            yield from _of_schema(member, value)
        elif kind == "prompt" and member == "arguments":
            yield from _of_arguments(value)
        elif not _has_form(value, _VOLATILE.get(kind, {}).get(member)):
            lasting = _lasting(value) if member == "annotations" else value
            if lasting or lasting == value:
                yield member, _written(lasting)


def changed_texts(kind: Kind, old: Entry, new: Entry) -> list[TextChange]:
    """Return the places with different texts, each with the old and the new texts that the other side lacks."""
    before, after = Counter(texts(kind, old)), Counter(texts(kind, new))
    before = Counter({text: after[text] if text[0] in _NAMES else count for text, count in before.items()})
    return _differences(before, after)


def server_texts(old: Snapshot, new: Snapshot) -> list[TextChange]:
    """Return the changed texts of a server."""
    before, after = (Counter(texts_of_server(one.info, one.instructions).items()) for one in (old, new))
    return _differences(before, after)


def _differences(before: Counter[Text], after: Counter[Text]) -> list[TextChange]:
    gone, come = before - after, after - before
    places = dict.fromkeys(place for place, _ in (*gone, *come))

    def at(place: str, side: Counter[Text]) -> list[str]:
        return [text for one, text in side.elements() if one == place]

    return [(place, at(place, gone), at(place, come)) for place in places]


def _lasting(value: object) -> Any:
    """Return annotations without the time of the last change."""
    if not is_object(value):
        return value
    return {key: one for key, one in value.items() if key != "lastModified" or not _has_form(one, _DATE)}


def _has_form(value: object, form: re.Pattern[str] | None) -> bool:
    return form is not None and form.fullmatch(_written(value)) is not None


def _of_arguments(value: object) -> Iterator[Text]:
    for one in value if is_array(value) else [value]:
        if not is_object(one):
            yield "arguments", _written(one)
            continue
        for member, words in one.items():
            if member not in ("name", "required"):
                yield f"arguments.{one.get('name')}.{member}", _written(words)
        yield "arguments", _written(one.get("name"))


def _of_schema(place: str, node: object) -> Iterator[Text]:
    if is_array(node):
        for child in node:
            yield from _of_schema(place, child)
    if not is_object(node):
        return
    root = place.partition(".")[0]  # names may move to definitions
    for keyword, value in node.items():
        here = f"{place}.{keyword}"
        if keyword in NAMED and is_object(value):
            for name, child in value.items():
                yield root, name
                yield from _of_schema(f"{place}.{name}", child)
        elif keyword in NESTING:
            yield from _of_schema(place if keyword in ("allOf", "anyOf", "oneOf") else here, value)
        elif keyword in _CONDITIONS:
            words = _WORDS if keyword in ("type", "$schema") else ()
            yield from ((root, name) for name in _names(value) if isinstance(name, str) and name not in words)
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


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def texts_of_server(info: Mapping[str, Any], instructions: str | None) -> dict[str, str]:
    """Return the texts of a server by place; name and version are its identity."""
    found = {f"serverInfo.{key}": _written(one) for key, one in info.items() if key not in ("name", "version")}
    return found if instructions is None else {**found, "instructions": instructions}
