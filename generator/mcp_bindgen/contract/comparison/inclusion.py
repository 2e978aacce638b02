"""Decide whether a JSON Schema accepts every value of another one: by a proof or a counterexample."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jsonschema_rs

from mcp_bindgen.app import MOST_STEPS, Complexity
from mcp_bindgen.spec.json import is_array, is_object

from ..candidates import candidates

_MAX_VALUES = 2000
"""Maximum number of sample values."""

_MAX_EXPLAINED_STEPS = 10_000
"""Maximum validation steps of an example with error details; a step takes up to 10 us."""

_MAX_ALTERNATIVES = 20
"""Maximum number of alternatives for a proof in this process; with more it may never end."""

_TIMEOUT_SECONDS = 5.0
"""Maximum time of a proof in another process, and of the search for a counterexample, in seconds."""

_PROOF = """
import json, sys, jsonschema_rs
one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in json.load(sys.stdin))
print(one.covers(other).value)
"""

_TANGLED = frozenset(
    {
        *("allOf", "not", "if", "then", "else", "dependentSchemas", "patternProperties", "propertyNames"),
        *("unevaluatedProperties", "$dynamicRef", "$recursiveRef"),
    }
)
"""Keywords that change their meaning if the object is closed."""


class Answer(Enum):
    """Answer to a question about two schemas."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Inclusion:
    """Answer to whether a receiver accepts every value of a sender.

    Attributes:
        answer: The answer.
        example: A value of the sender that the receiver refuses, in a list of at most one.
        place: Path to the problem in the value: names and indices.
        problem: Error message of the receiver.
    """

    answer: Answer
    example: Sequence[Any] = ()
    place: Sequence[str | int] = ()
    problem: str = ""


def included(sender: Any, receiver: Any) -> Inclusion:
    """Return whether `receiver` accepts every value of `sender`.

    A sender sends only declared members: unnamed members count only if its schema states `additionalProperties`. The
    library of the validator proves inclusion; the validator judges examples.
    """
    own, closed = _closed(sender), _can_be_closed(sender)
    found = _proof(own if closed else sender, receiver)
    if found is Answer.YES:
        return Inclusion(found)
    accepts, refuses = _validator(sender), _validator(receiver)
    if accepts is None or refuses is None:
        return Inclusion(Answer.UNKNOWN)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    for value in itertools.islice(candidates(sender, receiver), _MAX_VALUES):
        if time.monotonic() > deadline:
            return Inclusion(Answer.UNKNOWN)
        if not refuses.is_valid(value) and accepts.is_valid(value):
            if Complexity(receiver).exceeds(_MAX_EXPLAINED_STEPS, value):
                return Inclusion(Answer.NO, [value])
            error = next(refuses.iter_errors(value))
            return Inclusion(Answer.NO, [value], list(error.instance_path), error.message)
    return Inclusion(found if closed else Answer.UNKNOWN)


def too_complex(*schemas: Any) -> bool:
    """Return whether a schema is too complex to compare."""
    return any(Complexity(schema).exceeds(MOST_STEPS) for schema in schemas)


def _proof(sender: Any, receiver: Any) -> Answer:
    if _alternatives(sender) + _alternatives(receiver) > _MAX_ALTERNATIVES:
        return _proof_in_process(sender, receiver)
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in (receiver, sender))
        return Answer(str(one.covers(other).value))
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return Answer.UNKNOWN


def _proof_in_process(sender: Any, receiver: Any) -> Answer:
    words = [sys.executable, "-c", _PROOF]
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter of this process
            words, input=json.dumps([receiver, sender]), capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
        )
        return Answer(done.stdout.strip())
    except (subprocess.TimeoutExpired, ValueError):
        return Answer.UNKNOWN


def _alternatives(node: Any) -> int:
    """Return the number of members of the unions and intersections in a schema."""
    if is_object(node):
        own = sum(len(node[keyword]) for keyword in ("allOf", "anyOf", "oneOf") if is_array(node.get(keyword)))
        return own + sum(map(_alternatives, node.values()))
    return sum(map(_alternatives, node)) if is_array(node) else 0


def _validator(schema: Any) -> Any:
    try:
        return jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return None


def _can_be_closed(node: Any) -> bool:
    """Return whether closing the objects of a schema keeps the meaning of its keywords."""
    if is_object(node):
        mixed = "properties" in node and node.keys() & {"anyOf", "oneOf", "$ref"}
        return not (mixed or node.keys() & _TANGLED) and all(map(_can_be_closed, node.values()))
    return all(map(_can_be_closed, node)) if is_array(node) else True


def _closed(node: Any) -> Any:
    """Return a schema with closed objects, except for objects with `additionalProperties`."""
    if is_object(node):
        found = {key: value if key in ("const", "enum", "default") else _closed(value) for key, value in node.items()}
        is_record = is_object(node.get("properties")) or node.get("type") == "object"
        if is_record and isinstance(node.get("type", "object"), str | list) and "additionalProperties" not in node:
            found["additionalProperties"] = False
        return found
    return [_closed(child) for child in node] if is_array(node) else node
