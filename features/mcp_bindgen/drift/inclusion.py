"""Prove that a JSON Schema accepts every value of another one.

`jsonschema_rs` proves inclusion. A proof cannot be interrupted, so schemas of unknown peers, and those with many
alternatives, are compared in a process of their own with a time limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from mcp_bindgen.json_schema.keywords import NAMED, PROSE, VALUES, edited
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.runtime.model.json_types import is_array, is_object, json_key

TIMEOUT_SECONDS = 5.0
"""Maximum time of all proofs of a call in another process, in seconds."""

_MAX_ALTERNATIVES = 20
"""Maximum number of alternatives for a proof in this process; with more it may never end."""

_MAX_FORMAT_CHARACTERS = 1_000_000
"""Maximum number of characters that constants add to the schemas, to express formats."""

_PROVEN = "yes"
_PROVE = """
import json, sys, jsonschema_rs
for pair in json.load(sys.stdin):
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in pair)
        print(other.covers(one).value, flush=True)
    except Exception:
        print("unknown", flush=True)
"""


def prove(pairs: Sequence[tuple[Any, Any]], *, isolated: bool = False) -> list[bool]:
    """Return for each pair of schemas in 2020-12 if it is proven that the second one accepts all values of the first.

    Args:
        pairs: The schemas.
        isolated: True to prove in another process, within `TIMEOUT_SECONDS` in all; for schemas of unknown peers.
    """
    apart = [isolated or sum(map(_alternatives, pair)) > _MAX_ALTERNATIVES for pair in pairs]
    later = iter(
        _isolated([pair for pair, is_apart in zip(pairs, apart, strict=True) if is_apart]) if any(apart) else ()
    )
    return [next(later) if is_apart else _proof(*pair) for pair, is_apart in zip(pairs, apart, strict=True)]


def _proof(sender: Any, receiver: Any) -> bool:
    import jsonschema_rs  # takes time to load

    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in (sender, receiver))
        return str(other.covers(one).value) == _PROVEN
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return False


def _isolated(pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
    """Return the answers of another process; a pair without an answer in time is not proven."""
    words = [sys.executable, "-I", "-c", _PROVE]
    try:
        output = subprocess.run(  # noqa: S603 - the interpreter of this process
            words, input=json.dumps(pairs), capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        ).stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    except (OSError, ValueError, RecursionError):
        output = ""
    answers = [line == _PROVEN for line in output.split("\n")[:-1]]
    return [*answers[: len(pairs)], *[False] * (len(pairs) - len(answers))]


def _alternatives(node: object) -> int:
    """Return the number of members of the unions and intersections in a schema."""
    if is_object(node):
        own = sum(len(node[keyword]) for keyword in ("allOf", "anyOf", "oneOf") if is_array(node.get(keyword)))
        return own + sum(map(_alternatives, node.values()))
    return sum(map(_alternatives, node)) if is_array(node) else 0


def without_common(sender: object, other: object, receiver: object) -> Sequence[Any]:
    """Return three schemas without the members and items that `sender` and `other` share, which need no proof.

    A proof gets smaller, and does not fail for common parts that no proof can decide, such as recursive ones. The
    receiver accepts all that `other` allows.
    """
    roots = Targets(sender), Targets(other)

    def differing(sides: Sequence[Any]) -> Sequence[Any]:
        return (True,) * 3 if same_schema(sides[0], sides[1], roots) else shortened(sides)

    def shortened(sides: Sequence[Any]) -> Sequence[Any]:
        if not all(map(is_object, sides)):
            return sides
        found = [dict(side) for side in sides]
        for keyword in ("properties", "items"):
            parts: Sequence[Any] = [side.get(keyword) for side in sides]
            if not all(map(is_object, parts)):
                continue
            if keyword == "properties":
                parts = [dict(part) for part in parts]
                for name in parts[0].keys() & parts[1].keys() & parts[2].keys():
                    for part, one in zip(parts, differing([part[name] for part in parts]), strict=True):
                        part[name] = one
            elif not any("prefixItems" in side for side in sides):  # else they may be items of other places
                parts = differing(parts)
            for side, part in zip(found, parts, strict=True):
                side[keyword] = part
        return found

    return shortened((sender, other, receiver))


def same_schema(
    one: object,
    other: object,
    roots: tuple[Targets, Targets],
    seen: set[tuple[int, int]] | None = None,
    *,
    has_names: bool = False,
) -> bool:
    """Return whether two schemas are equal but for their prose and the names of definitions.

    Args:
        one: The first schema.
        other: The second one.
        roots: References of their documents.
        seen: The pairs that were compared; one that differs ends the whole comparison.
        has_names: True if the members have names instead of keywords.
    """
    seen = set() if seen is None else seen
    if (id(one), id(other)) in seen:
        return True
    if not (is_object(one) and is_object(other)):
        if is_array(one) and is_array(other) and len(one) == len(other):
            return all(same_schema(*pair, roots, seen) for pair in zip(one, other, strict=True))
        return json_key(one) == json_key(other)
    seen.add((id(one), id(other)))
    prose = frozenset[str]() if has_names else PROSE
    words = one.keys() - prose
    if words != other.keys() - prose:
        return False
    for word in words:
        parts = one[word], other[word]
        if word == "$ref" and not has_names:
            is_same = same_schema(roots[0].find(parts[0]), roots[1].find(parts[1]), roots, seen)
        elif word in VALUES and not has_names:
            is_same = json_key(parts[0]) == json_key(parts[1])
        else:
            is_same = same_schema(*parts, roots, seen, has_names=word in NAMED and not has_names)
        if not is_same:
            return False
    return True


def with_formats(*schemas: Any) -> Sequence[Any]:
    """Return schemas with each `format` of texts as a condition.

    The condition is a pattern that no other text fits, or a constant of the schemas that has the format. With too many
    constants, and with text that is no Unicode, the schemas are replaced by None, which proves nothing.
    """
    import jsonschema_rs  # takes time to load

    constants = sorted({text for schema in schemas for text in _constants(schema)})
    if json.dumps(schemas).count('"format"') * sum(map(len, constants)) > _MAX_FORMAT_CHARACTERS:
        return [None] * len(schemas)

    @cache
    def known_texts(format: str) -> list[str]:
        return list(filter(jsonschema_rs.validator_for({"format": format}, validate_formats=True).is_valid, constants))

    def assert_format(node: dict[str, Any], found: dict[str, Any]) -> None:
        if not isinstance(format := node.get("format"), str):
            return
        del found["format"]
        condition: dict[str, Any] = {"pattern": f"^\x00format {format}$"}
        if known := known_texts(format):
            condition = {"anyOf": [condition, {"enum": known}]}
        if known or "pattern" in found:
            condition = {"allOf": [*found.get("allOf", []), condition]}
        found |= condition

    try:
        return [edited(schema, assert_format) for schema in schemas]
    except ValueError:
        return [None] * len(schemas)


def _constants(node: object, *, is_constant: bool = False) -> Iterator[str]:
    """Yield the texts in the constants of a schema."""
    if is_object(node):
        for key, value in node.items():
            yield from _constants(value, is_constant=is_constant or key in ("const", "enum"))
    elif is_array(node):
        for value in node:
            yield from _constants(value, is_constant=is_constant)
    elif isinstance(node, str) and is_constant:
        yield node
