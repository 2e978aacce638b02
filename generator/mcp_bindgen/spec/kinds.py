"""Kinds of values in input files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from .errors import BadInput
from .json import is_array, is_object


@dataclass(frozen=True)
class Kind:
    """Kind of value.

    Attributes:
        fits: Returns whether a value is of this kind.
        description: Description in a fix, after "give it".
    """

    fits: Callable[[Any], bool]
    description: str

    def check(self, value: Any, name: str, pointer: str) -> None:
        """Raise the error for the `value` of `name`, at `pointer`, if it is of another kind."""
        if not self.fits(value):
            message = f"{name!r} has a value of the wrong kind"
            raise BadInput(message, pointer=pointer, fix=f"give it {self.description}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return is_array(value) and all(map(_is_text, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_version(value: Any) -> bool:
    return _is_text(value) and re.fullmatch("[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*", value) is not None and len(value) <= 64


def _is_pattern(value: Any) -> bool:
    from jsonschema_rs import Draft202012Validator, ValidationError  # few schemas have patterns

    try:
        Draft202012Validator({"pattern": value})
    except ValidationError:
        return False
    return True


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


ANYTHING = Kind(lambda value: True, "a JSON value")
JSON = Kind(_is_json, "a JSON value, without dates, nan and inf")
TEXT = Kind(_is_text, "a string")
PATTERN = Kind(_is_pattern, "a regular expression")
VERSION = Kind(_is_version, "up to 64 letters and digits, with single . _ + - between them")
TEXTS = Kind(_is_texts, "an array of strings")
TYPES = Kind(lambda value: _is_text(value) or (_is_texts(value) and value != []), "the name of a type, or several")
NUMBER = Kind(_is_number, "a number")
STEP = Kind(lambda value: _is_number(value) and value > 0, "a number above 0")
WHOLE = Kind(_is_whole, "a whole number")
COUNT = Kind(lambda value: _is_whole(value) and value >= 0, "a whole number from 0 on")
OBJECT = Kind(is_object, "an object")
TEXT_MAP = Kind(lambda value: is_object(value) and all(map(_is_text, value.values())), "a table of strings")
SETTINGS = Kind(
    lambda value: TEXT_MAP.fits(value) and value.keys() <= {"client", "server"},
    'definitions for the sides that declare settings, as in { client = "Name" }',
)
FILLED = Kind(lambda value: is_array(value) and value != [], "an array with something in it")
SCHEMA = Kind(lambda value: isinstance(value, dict | bool), "a schema: an object or a boolean")


def named(name: str) -> Kind:
    """Return the kind that tables call by its name, e.g. `text map`."""
    kind: Kind = globals()[name.upper().replace(" ", "_")]
    return kind


def one_of(*choices: str) -> Kind:
    """Return the kind of a few strings."""
    return Kind(lambda value: value in choices, f"one of {', '.join(choices)}")
