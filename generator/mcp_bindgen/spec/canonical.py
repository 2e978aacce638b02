"""Write schemas in canonical form: structure only, one order, one digest."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from . import pointer as json_pointer
from .json import is_array, is_object
from .keywords import ANNOTATIONS, NESTING, PROSE, STRUCTURE, Schema, rebuild

_ORDER = {keyword: position for position, keyword in enumerate((*STRUCTURE, *sorted(ANNOTATIONS)))}


def canonical(document: Schema) -> Schema:
    """Return `document` without prose, its definitions, properties and keywords in canonical order.

    Two documents that accept the same by the same structure have the same canonical form; the order of union
    members is kept, because readers meet it in generated code.
    """
    definitions = document["$defs"]
    return {
        "$schema": document["$schema"],
        "$defs": {name: canonical_schema(definitions[name]) for name in sorted(definitions)},
    }


def canonical_schema(schema: Schema) -> Schema:
    """Return one schema without prose, its properties and keywords in canonical order."""
    kept = {
        keyword: value if keyword in NESTING else _sorted(value)
        for keyword, value in schema.items()
        if keyword not in PROSE
    }
    ordered = dict(sorted(kept.items(), key=lambda item: (_ORDER.get(item[0], len(_ORDER)), item[0])))
    for keyword in ("required", "enum"):
        if keyword in ordered:
            ordered[keyword] = sorted(ordered[keyword], key=_rank)
    if not ordered.get("required", True):
        del ordered["required"]
    if "properties" in ordered:
        ordered["properties"] = {name: ordered["properties"][name] for name in sorted(ordered["properties"])}
    return rebuild(ordered, lambda child, _: canonical_schema(child))


def _sorted(value: Any) -> Any:
    """Return a value that is data, such as a `default`, with the members of its objects in order."""
    if is_object(value):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if is_array(value) else value


def _rank(value: Any) -> tuple[str, Any]:
    """Order the values of an `enum`, which may be of several types."""
    return type(value).__name__, value if isinstance(value, str | int | float) else json.dumps(value)


def same(one: Any, other: Any, keyword: str) -> bool:
    """Return whether two values of a keyword, or two schemas, differ at most in prose and in order."""
    first, second = ({keyword: value} if not is_object(value) else value for value in (one, other))
    return json.dumps(canonical_schema(first)) == json.dumps(canonical_schema(second))


def dumps(document: Any) -> str:
    """Return the text of a canonical document, as it is committed."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def digest(document: Schema) -> str:
    """Return the sha256 of the canonical structure of `document`, independent of prose and of layout."""
    compact = json.dumps(canonical(document), separators=(",", ":"), ensure_ascii=False)
    return sha256(compact.encode()).hexdigest()


def differences(ours: Any, theirs: Any, pointer: str = "") -> list[str]:
    """Return one line for each place at which two JSON documents differ, with the pointer and what stands there."""
    if is_object(ours) and is_object(theirs):
        found: list[str] = []
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            here = json_pointer.join(pointer, name)
            if name not in theirs:
                found.append(f"{here}: gone")
            elif name not in ours:
                found.append(f"{here}: new")
            else:
                found.extend(differences(ours[name], theirs[name], here))
        return found
    if ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool):
        return []
    return [f"{pointer}: {json.dumps(ours)} -> {json.dumps(theirs)}"]
