"""Search for values that one JSON Schema allows and another one refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import jsonschema_rs

from mcp_bindgen.app.validation import Complexity
from mcp_bindgen.drift.changes import Witness
from mcp_bindgen.spec.json import is_array, is_object

from .candidates import candidates

_MAX_VALUES = 2000
"""Maximum number of sample values."""

_MAX_EXPLAINED_STEPS = 10_000
"""Maximum validation steps of a value with error details; a step takes up to 10 us."""

_TIMEOUT_SECONDS = 5.0
"""Maximum time of a search, in seconds."""


def witness(sender: Any, receiver: Any, stated: Any = True) -> Witness | None:
    """Return a small value that `sender` and `stated` allow and `receiver` refuses; None if none is found.

    The candidates are samples of the difference of both schemas, and samples of the sender with the limits of both.
    """
    try:
        accepts, refuses, allows = (
            jsonschema_rs.validator_for(one, offline=True) for one in (sender, receiver, stated)
        )
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return None
    deadline = time.monotonic() + _TIMEOUT_SECONDS

    def proves(value: Any) -> bool:
        return not refuses.is_valid(value) and accepts.is_valid(value) and allows.is_valid(value)

    for value in islice(chain(_differing(sender, receiver), _shallow(sender, receiver)), _MAX_VALUES):
        if time.monotonic() > deadline:
            return None
        if not proves(value):
            continue
        if Complexity(receiver).exceeds(_MAX_EXPLAINED_STEPS, value):
            return Witness(value)
        smaller: Any = value
        while smaller is not None:
            value, smaller = smaller, next(filter(proves, _smaller(smaller)), None)
        error = next(refuses.iter_errors(value))
        return Witness(value, tuple(error.instance_path), error.message)
    return None


def _differing(sender: Any, receiver: Any) -> Iterator[Any]:
    """Yield sample values of the schema that allows what `sender` allows and `receiver` refuses."""
    try:
        one, other = (jsonschema_rs.canonicalize(schema, offline=True) for schema in (sender, receiver))
        difference = one.subtract(other).to_json_schema()
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return
    yield from islice(_shallow(difference, sender, receiver), _MAX_VALUES // 2)


def _shallow(*schemas: Any) -> Iterator[Any]:
    """Yield candidates for values; none if the schemas are nested too deeply."""
    with suppress(RecursionError):
        yield from candidates(*schemas)


def _smaller(value: Any) -> Iterator[Any]:
    """Yield values that have one member or item less, at any depth."""
    if is_object(value):
        for name in value:
            yield {key: one for key, one in value.items() if key != name}
            yield from ({**value, name: one} for one in _smaller(value[name]))
    elif is_array(value):
        for index, item in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            yield from ([*value[:index], one, *value[index + 1 :]] for one in _smaller(item))
