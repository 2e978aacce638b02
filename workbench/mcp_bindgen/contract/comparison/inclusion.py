"""Decide whether a JSON Schema accepts every value of another one: by a proof or a counterexample."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from mcp_bindgen.app import MOST_STEPS, Complexity
from mcp_bindgen.app.inclusion import Answer, prove, sent

from ..sample_values import sample_values

_MAX_VALUES = 2000
"""Maximum number of sample values."""

_MAX_EXPLAINED_STEPS = 10_000
"""Maximum validation steps of an example with error details; a step takes up to 10 us."""

_TIMEOUT_SECONDS = 5.0
"""Maximum time of the search for a counterexample, in seconds."""


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


def included(sender: Any, receiver: Any, *, formats: bool = False) -> Inclusion:
    """Return whether `receiver` accepts every value of `sender`.

    `app.inclusion` says which values a sender sends, and proves; the validator judges examples.

    Args:
        sender: Schema of the sender.
        receiver: Schema of the receiver.
        formats: True to count the formats of texts as conditions of a proof.
    """
    (found,) = prove([(sender, receiver)], formats=formats)
    if found is Answer.YES:
        return Inclusion(found)
    stated = sent(sender)
    accepts, refuses = _validator(stated), _validator(receiver)
    if accepts is None or refuses is None:
        return Inclusion(Answer.UNKNOWN)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    for value in itertools.islice(sample_values(stated, receiver), _MAX_VALUES):
        if time.monotonic() > deadline:
            return Inclusion(Answer.UNKNOWN)
        if not refuses.is_valid(value) and accepts.is_valid(value):
            if Complexity(receiver).exceeds(_MAX_EXPLAINED_STEPS, value):
                return Inclusion(Answer.NO, [value])
            error = next(refuses.iter_errors(value))
            return Inclusion(Answer.NO, [value], list(error.instance_path), error.message)
    return Inclusion(found)


def too_complex(*schemas: Any) -> bool:
    """Return whether a schema is too complex to compare."""
    return any(Complexity(schema).exceeds(MOST_STEPS) for schema in schemas)


def _validator(schema: Any) -> Any:
    try:
        return jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return None
