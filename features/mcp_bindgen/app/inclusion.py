"""Prove that a JSON Schema accepts every value that a sender of another schema sends.

`jsonschema_rs` proves inclusion. A proof cannot be interrupted, so schemas of unknown peers are compared in a process
of their own with a time limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from enum import Enum
from functools import cache
from typing import Any

import jsonschema_rs

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .dialects import edited, in_one_dialect, objects

TIMEOUT_SECONDS = 5.0
"""Maximum time of all proofs of a call in another process, in seconds."""

_MAX_ALTERNATIVES = 20
"""Maximum number of alternatives for a proof in this process; with more it may never end."""

_MAX_FORMAT_CHARACTERS = 1_000_000
"""Maximum number of characters that constants add to the schemas, to express formats."""

_PROVE = """
import json, sys, jsonschema_rs
for pair in json.load(sys.stdin):
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in pair)
        print(other.covers(one).value, flush=True)
    except Exception:
        print("unknown", flush=True)
"""

UNDECLARED = "undeclared-member"
"""Member that stands for all members that a schema does not declare."""

_TANGLED: Set[str] = {
    *("allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "patternProperties", "propertyNames"),
    *("contains", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"),
}
"""Keywords that change their meaning if the object is closed."""

_BRANCHES: Set[str] = {"anyOf", "oneOf", "$ref"}

_ABOUT_MEMBERS: Set[str] = {
    *("properties", "additionalProperties", "required", "minProperties", "maxProperties", "dependentRequired"),
}
"""Keywords that hold for members which a branch of the same object does not declare."""


class Answer(Enum):
    """Answer to a question about two schemas."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def prove(pairs: Sequence[tuple[Any, Any]], *, formats: bool = False, isolated: bool = False) -> list[Answer]:
    """Return for each pair of a sender's and a receiver's schema whether the receiver accepts all that is sent.

    A sender sends the members that its schema declares. Where its schema allows more members, the receiver must do so,
    too, but it may declare members that the sender does not know. `NO` is certain only if a value shows it.

    Args:
        pairs: Schema of the sender, schema of the receiver.
        formats: True to count the formats of texts as conditions, because most servers enforce them.
        isolated: True to prove in another process, within `TIMEOUT_SECONDS` in all; for schemas of unknown peers.
    """
    stated = [in_one_dialect(sent(sender), receiver, formats=formats) for sender, receiver in pairs]
    if formats:
        stated = [_with_formats(sender, receiver) for sender, receiver in stated]
    if isolated or any(_alternatives(one) + _alternatives(other) > _MAX_ALTERNATIVES for one, other in stated):
        found = _isolated(stated)
    else:
        found = [_proof(one, other) for one, other in stated]
    return [
        answer if answer is Answer.YES or can_be_closed(sender) else Answer.UNKNOWN
        for answer, (sender, _) in zip(found, pairs, strict=True)
    ]


def sent(schema: object) -> Any:
    """Return the schema of the values that a sender sends: undeclared members are one free member."""

    def close(node: dict[str, Any], found: dict[str, Any]) -> None:
        """Close an object, unless it has `additionalProperties`, or is a free map below the top."""
        is_root = node is schema and node.get("type") == "object" and node.keys().isdisjoint(_BRANCHES)
        is_record = is_root or is_object(node.get("properties"))
        if is_record and "additionalProperties" not in node:
            needed = [name for name in node.get("required") or () if isinstance(name, str)]
            found["properties"] = {**{name: {} for name in (UNDECLARED, *needed)}, **found.get("properties", {})}
            found["additionalProperties"] = False

    return edited(schema, close) if can_be_closed(schema) else schema


def can_be_closed(schema: object) -> bool:
    """Return whether closing the objects of a schema keeps the meaning of its keywords."""
    for node in objects(schema):
        branches = node.keys() & _BRANCHES
        if len(branches) > 1 or (branches and node.keys() & _ABOUT_MEMBERS) or node.keys() & _TANGLED:
            return False
    return True


def _proof(sender: Any, receiver: Any) -> Answer:
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in (sender, receiver))
        return Answer(str(other.covers(one).value))
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return Answer.UNKNOWN


def _isolated(pairs: Sequence[tuple[Any, Any]]) -> list[Answer]:
    """Return the answers of another process; a pair without an answer in time is unknown."""
    words = [sys.executable, "-I", "-c", _PROVE]
    try:
        output = subprocess.run(  # noqa: S603 - the interpreter of this process
            words, input=json.dumps(pairs), capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        ).stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    except (OSError, ValueError, RecursionError):
        output = ""
    answers = [Answer(line) for line in output.split("\n")[:-1]]
    return [*answers[: len(pairs)], *[Answer.UNKNOWN] * (len(pairs) - len(answers))]


def _alternatives(node: object) -> int:
    """Return the number of members of the unions and intersections in a schema."""
    if is_object(node):
        own = sum(len(node[keyword]) for keyword in ("allOf", "anyOf", "oneOf") if is_array(node.get(keyword)))
        return own + sum(map(_alternatives, node.values()))
    return sum(map(_alternatives, node)) if is_array(node) else 0


def _with_formats(*schemas: Any) -> tuple[Any, Any]:
    """Return two schemas with each `format` of texts as a condition.

    The condition is a pattern that no other text fits, or a constant of the schemas that has the format. With too many
    constants, and with text that is no Unicode, the schemas are replaced by None, which proves nothing.
    """
    constants = sorted({text for schema in schemas for text in _constants(schema)})
    if json.dumps(schemas).count('"format"') * sum(map(len, constants)) > _MAX_FORMAT_CHARACTERS:
        return None, None

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
        sender, receiver = (edited(schema, assert_format) for schema in schemas)
    except ValueError:
        return None, None
    return sender, receiver


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
