"""Valid sample values of JSON Schemas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mcp_bindgen.app.validation import Validator
from mcp_bindgen.spec.json import is_array, is_object

from .sample_values import sample_values

_MAX_TRIED = 500
_MAX_SAMPLES = 40


def samples(schema: Any) -> Sequence[Any]:
    """Return valid values of a schema, the same ones each time; none if no sample value is valid.

    Values with many members come first, and values that `format` allows replace all other values.

    Args:
        schema: A JSON Schema.

    Raises:
        InvalidResult: The schema cannot be used.
    """
    plain, strict = (Validator(schema, "the schema", validate_formats=formats) for formats in (False, True))
    valid = [value for value in islice(sample_values(schema), _MAX_TRIED) if not plain.problems(value, "")]
    chosen = [value for value in valid if not strict.problems(value, "")] or valid
    return sorted(chosen, key=_fullness, reverse=True)[:_MAX_SAMPLES]


def full_samples(schema: Any) -> Sequence[Any]:
    """Return the samples of a schema that have at least half of the members of the fullest sample.

    Raises:
        InvalidResult: The schema cannot be used.
    """
    found = samples(schema)
    return [value for value in found if 2 * _fullness(value) >= _fullness(found[0])]


def _fullness(value: Any) -> int:
    """Return the number of members of an object; 1 for an array with items."""
    return len(value) if is_object(value) else int(is_array(value) and bool(value))
