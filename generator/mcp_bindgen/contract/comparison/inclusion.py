"""Decide whether one schema accepts all that another describes: by a proof, or by a counterexample."""

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

_MOST = 2000
"""How many values are tried."""

_MOST_EXPLAINED = 10_000
"""How many steps of validation an example may take whose errors are asked for: each costs up to 10 us."""

_FEW = 20
"""How many alternatives are compared at once; with more a proof may never end, so it gets a process of its own."""

_PATIENCE = 5.0
"""Seconds that such a proof may take, and the search for a counterexample."""

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
"""Keywords beside which an object cannot be closed without changing what else it means."""


class Answer(Enum):
    """The answer to a question about two schemas, as far as it is known."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Inclusion:
    """The answer to whether a receiver accepts all that a sender may say.

    Attributes:
        answer: What is known.
        example: A value that the sender may say and the receiver refuses, where one was found, in a list of one.
        place: Where in the value the receiver sees the problem: names and indices.
        problem: What it says of it.
    """

    answer: Answer
    example: Sequence[Any] = ()
    place: Sequence[str | int] = ()
    problem: str = ""


def included(sender: Any, receiver: Any) -> Inclusion:
    """Return whether `receiver` accepts all that `sender` describes.

    A sender says only what it declares: members that its schema does not name count only where it says that there may
    be others. A proof is the canonical form's, of the validator's library; an example is judged by the validator.
    """
    own, closed = _closed(sender), _can_be_closed(sender)
    found = _proof(own if closed else sender, receiver)
    if found is Answer.YES:
        return Inclusion(found)
    accepts, refuses = _validator(sender), _validator(receiver)
    if accepts is None or refuses is None:
        return Inclusion(Answer.UNKNOWN)
    deadline = time.monotonic() + _PATIENCE
    for value in itertools.islice(candidates(sender, receiver), _MOST):
        if time.monotonic() > deadline:
            return Inclusion(Answer.UNKNOWN)
        if not refuses.is_valid(value) and accepts.is_valid(value):
            if Complexity(receiver).exceeds(_MOST_EXPLAINED, value):
                return Inclusion(Answer.NO, [value])
            error = next(refuses.iter_errors(value))
            return Inclusion(Answer.NO, [value], list(error.instance_path), error.message)
    return Inclusion(found if closed else Answer.UNKNOWN)


def too_complex(*schemas: Any) -> bool:
    """Return whether one of the schemas takes too many steps of validation to be held against anything."""
    return any(Complexity(schema).exceeds(MOST_STEPS) for schema in schemas)


def _proof(sender: Any, receiver: Any) -> Answer:
    if _alternatives(sender) + _alternatives(receiver) > _FEW:
        return _patient_proof(sender, receiver)
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in (receiver, sender))
        return Answer(str(one.covers(other).value))
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return Answer.UNKNOWN


def _patient_proof(sender: Any, receiver: Any) -> Answer:
    words = [sys.executable, "-c", _PROOF]
    try:
        done = subprocess.run(  # noqa: S603 - our own Python
            words, input=json.dumps([receiver, sender]), capture_output=True, text=True, timeout=_PATIENCE
        )
        return Answer(done.stdout.strip())
    except (subprocess.TimeoutExpired, ValueError):
        return Answer.UNKNOWN


def _alternatives(node: Any) -> int:
    """Return how many members the unions and intersections in a schema have."""
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
    """Return whether nothing in a schema would change its meaning if its objects were closed."""
    if is_object(node):
        mixed = "properties" in node and node.keys() & {"anyOf", "oneOf", "$ref"}
        return not (mixed or node.keys() & _TANGLED) and all(map(_can_be_closed, node.values()))
    return all(map(_can_be_closed, node)) if is_array(node) else True


def _closed(node: Any) -> Any:
    """Return a schema whose objects have no members but those that it names, unless it says that there are others."""
    if is_object(node):
        found = {key: value if key in ("const", "enum", "default") else _closed(value) for key, value in node.items()}
        is_record = is_object(node.get("properties")) or node.get("type") == "object"
        if is_record and isinstance(node.get("type", "object"), str | list) and "additionalProperties" not in node:
            found["additionalProperties"] = False
        return found
    return [_closed(child) for child in node] if is_array(node) else node
