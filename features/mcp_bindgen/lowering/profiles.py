"""Profiles: the JSON Schema that a provider or a host accepts, as dated data with sources, and conformance with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from mcp_bindgen.app.loading import profile_names, read_profile
from mcp_bindgen.json_schema.keywords import children, edited, nodes, subschemas
from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .codecs import Json
from .shapes import Schema


class BadProfile(ValueError):
    """A profile does not exist, or its file has another form."""


@dataclass(frozen=True)
class Fact:
    """An entry of a profile.

    Attributes:
        value: Its value.
        source: The documentation, code or report that states it.
        date: The day on which the source was read.
    """

    value: Any
    source: str
    date: date


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The schemas and requests that a provider accepts in one mode.

    Attributes:
        name: Its name, such as `openai-strict`.
        title: Name of the provider and mode.
        facts: Entry -> value, source and date; each of the attributes below is one.
        keywords: Accepted keywords; `*` for all.
        refuses: Keywords that are refused everywhere.
        root_refuses: Keywords that are refused at the root only.
        closed_objects: Whether each object must have `additionalProperties: false`.
        all_required: Whether each property must be required.
        null: Whether null is expressible.
        untyped: Whether a schema may be without a type.
        type_arrays: Whether `type` may be an array.
        recursion: Whether a definition may contain itself.
        only_strings_enumerated: Whether `enum` accepts only non-empty strings.
        exact_case: Whether the model keeps the letter case of `enum` and `const`.
        formats: Accepted formats; `*` for all.
        pattern_refuses: Regular expression of the constructs that `pattern` must not have.
        requires: Keywords that each schema of their type must have: `properties` of objects, `items` of arrays.
        empty_objects: Whether an object below the root may be without properties.
        max_min_items: Maximum of `minItems`.
        alone: Keywords that allow no siblings.
        property_name: Regular expression of property names.
        property_name_at_root: Whether `property_name` holds at the root only.
        max_properties: Maximum of properties in a schema.
        max_depth: Maximum of nested objects and arrays.
        max_enum_values: Maximum of enumerated values in a schema.
        max_characters: Maximum of characters in names and enumerated values.
        max_enum_characters: Maximum of characters of an `enum` with more than `large_enum` values.
        large_enum: Number of values above which `max_enum_characters` holds.
        tool_name: Regular expression of one character of a tool name.
        tool_name_start: Regular expression of its first character.
        tool_name_length: Maximum of characters of a tool name.
        description_length: Maximum of characters of a tool's description.
        description_required: Whether a tool must have a description.
        max_tools: Maximum of tools in a request.
        max_unions: Maximum of members with a union in a request.
        max_optional: Maximum of optional members in a request.
    """

    name: str
    title: str
    facts: Mapping[str, Fact] = field(repr=False)
    keywords: frozenset[str] = frozenset({"*"})
    refuses: frozenset[str] = frozenset()
    root_refuses: frozenset[str] = frozenset()
    closed_objects: bool = False
    all_required: bool = False
    null: bool = True
    untyped: bool = True
    type_arrays: bool = True
    recursion: bool = True
    only_strings_enumerated: bool = False
    exact_case: bool = True
    formats: frozenset[str] = frozenset({"*"})
    pattern_refuses: str = ""
    requires: frozenset[str] = frozenset()
    empty_objects: bool = True
    max_min_items: int | None = None
    alone: frozenset[str] = frozenset()
    property_name: str = ""
    property_name_at_root: bool = False
    max_properties: int | None = None
    max_depth: int | None = None
    max_enum_values: int | None = None
    max_characters: int | None = None
    max_enum_characters: int | None = None
    large_enum: int = 0
    tool_name: str = "[A-Za-z0-9_.-]"
    tool_name_start: str = ""
    tool_name_length: int = 128
    description_length: int | None = None
    description_required: bool = False
    max_tools: int | None = None
    max_unions: int | None = None
    max_optional: int | None = None

    def takes(self, keyword: str) -> bool:
        """Return whether a keyword is accepted below the root."""
        return (keyword in self.keywords or "*" in self.keywords) and keyword not in self.refuses

    def takes_format(self, format: str) -> bool:
        """Return whether a format is accepted."""
        return self.takes("format") and (format in self.formats or "*" in self.formats)

    def takes_pattern(self, pattern: str) -> bool:
        """Return whether a regular expression is accepted."""
        return self.takes("pattern") and not (self.pattern_refuses and re.search(self.pattern_refuses, pattern))

    def takes_member(self, name: str, *, root: bool) -> bool:
        """Return whether a property name is accepted."""
        checked = self.property_name and (root or not self.property_name_at_root)
        return not checked or re.fullmatch(self.property_name, name) is not None


_ENTRIES = {one.name: one.type for one in fields(Profile) if one.name not in ("name", "title", "facts")}


def names() -> Sequence[str]:
    """Return the names of the profiles that come with mcp-bindgen."""
    return profile_names("providers")


@cache
def profile(name: str, above: tuple[str, ...] = ()) -> Profile:
    """Return a profile by its name, or by the path of a TOML file.

    A file of `schema/providers` shows the form: `title`, optionally `base` with the name of the profile that it
    changes, and a table with `value`, `source` and `date` for each entry.

    Args:
        name: The name, or the path.
        above: The profiles that this one is a base of.

    Raises:
        BadProfile: There is none, or its file has another form.
    """
    if name in above:
        raise BadProfile(f"{name}: base leads back to this file; name another profile")
    file, document = read_profile("providers", name, BadProfile)
    title, base = document.pop("title", file.stem), document.pop("base", None)
    if not isinstance(title, str) or not isinstance(base, str | None):
        raise BadProfile(f"{file}: title and base must be texts")
    facts = dict(profile(base, (*above, name)).facts) if base is not None else {}
    facts |= {key: _fact(file, key, table) for key, table in document.items()}
    values: dict[str, Any] = {
        key: frozenset(one.value) if is_array(one.value) else one.value for key, one in facts.items()
    }
    return Profile(name=file.stem, title=title, facts=facts, **values)


_FORMS: Mapping[str, type] = {"str": str, "bool": bool, "int": int, "frozenset[str]": list}


def _fact(file: Path, key: str, table: Any) -> Fact:
    if key not in _ENTRIES:
        raise BadProfile(f"{file}: unknown entry {key}; use one of {', '.join(_ENTRIES)}")
    if not is_object(table) or table.keys() != {"value", "source", "date"} or not isinstance(table["date"], date):
        raise BadProfile(f"{file}: [{key}] needs value, source and date")
    form = _FORMS[str(_ENTRIES[key]).removesuffix(" | None")]
    if not isinstance(table["value"], form) or (form is int and isinstance(table["value"], bool)):
        raise BadProfile(f"{file}: {key}.value must be of type {form.__name__}")
    texts = [table["source"], *(table["value"] if is_array(table["value"]) else [])]
    if not all(isinstance(one, str) for one in texts):
        raise BadProfile(f"{file}: [{key}] needs texts")
    return Fact(**table)


_REQUIRABLE = {"object": "properties", "array": "items"}
_LINKED = ("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")


def missing(node: Schema, profile: Profile) -> list[str]:
    """Return the keywords that a schema must have for its type, and has not."""
    types = node.get("type")
    needed = [word for type, word in _REQUIRABLE.items() if type == types or (is_array(types) and type in types)]
    return [word for word in needed if word in profile.requires and word not in node]


def completed(schema: Json, profile: Profile) -> Any:
    """Return a schema with the keywords that it must have, which accept every value."""
    if any("unevaluatedItems" in node for _, node in nodes(schema)):
        return schema  # `items` would change its meaning
    return edited(schema, lambda node, found: found.update({word: {} for word in missing(node, profile)}))


def is_free_of_references(schema: Json) -> bool:
    """Return whether a schema refers to nothing, and is no target by a name."""
    return all(word not in node for _, node in nodes(schema) for word in _LINKED)


def refused_at(schema: Json, profile: Profile, *, root: bool = True) -> str | None:
    """Return the pointer of the first place of a schema that a profile refuses, without its limits of size, or None."""
    if isinstance(schema, bool) and not profile.untyped:
        return ""
    for pointer, node in nodes(schema):
        if not _is_accepted(node, profile, root=root and not pointer):
            return pointer
        for keyword, place, part in () if profile.untyped else subschemas(node, pointer):
            if isinstance(part, bool) and keyword != "additionalProperties":
                return place
    return None


def _is_accepted(node: Schema, profile: Profile, *, root: bool) -> bool:
    """Return whether a profile accepts a schema, regardless of its subschemas."""
    types = node.get("type")
    listed = types if is_array(types) else [types]
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return (
        (("*" in profile.keywords and not profile.refuses) or all(map(profile.takes, node)))
        and not (root and (types != "object" or node.keys() & profile.root_refuses))
        and not (len(node) > 1 and node.keys() & profile.alone)
        and (profile.untyped or types is not None or not node.keys().isdisjoint({"anyOf", "$ref"}))
        and (profile.type_arrays or not is_array(types))
        and (profile.null or "null" not in listed)
        and ("object" not in listed or _is_accepted_object(node, profile, root=root))
        and not missing(node, profile)
        and not (profile.only_strings_enumerated and not all(isinstance(value, str) and value for value in values))
        and not (profile.closed_objects and any(is_object(value) or is_array(value) for value in values))
        and ("format" not in node or profile.takes_format(str(node["format"])))
        and ("pattern" not in node or profile.takes_pattern(str(node["pattern"])))
        and (profile.max_min_items is None or node.get("minItems", 0) <= profile.max_min_items)
    )


def _is_accepted_object(node: Schema, profile: Profile, *, root: bool) -> bool:
    names = node.get("properties", {}).keys()
    return (
        (not profile.closed_objects or node.get("additionalProperties") is False)
        and (not profile.all_required or names == set(node.get("required", ())))
        and (profile.empty_objects or root or bool(names))
        and all(profile.takes_member(name, root=root) for name in names)
    )


def excesses(schema: Schema, profile: Profile) -> Iterator[str]:
    """Yield the limits of size that a schema exceeds."""
    found = [node for _, node in nodes(schema)]
    values = [list(map(_text, node["enum"])) for node in found if "enum" in node]
    names = [name for node in found for word in ("properties", "$defs") for name in node.get(word, ())]
    constants = [text for texts in values for text in texts]
    constants += [_text(node["const"]) for node in found if "const" in node]
    large = [sum(map(len, texts)) for texts in values if profile.large_enum and len(texts) > profile.large_enum]
    counts: Iterable[tuple[str, Callable[[], int], int | None]] = (
        ("properties", lambda: sum(len(node.get("properties", ())) for node in found), profile.max_properties),
        ("nested levels", lambda: depth(schema), profile.max_depth),
        ("enumerated values", lambda: sum(map(len, values)), profile.max_enum_values),
        ("characters of names and constants", lambda: sum(map(len, names + constants)), profile.max_characters),
        ("characters of a large enum", lambda: max(large, default=0), profile.max_enum_characters),
    )
    for words, count, limit in counts:
        if limit is not None and (number := count()) > limit:
            yield f"{number} {words}, and at most {limit} are allowed"


def depth(schema: Json) -> int:
    """Return the number of nested objects and arrays, without following references."""
    if not is_object(schema):
        return 0
    own = int(not {"properties", "items"}.isdisjoint(schema))
    return max(own + max((depth(part) for keyword, _, part in children(schema) if keyword != "$defs"), default=0), 0)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
