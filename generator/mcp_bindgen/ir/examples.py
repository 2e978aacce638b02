"""Example values of types, and the test whether a type accepts a value."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_bindgen.runtime.model.json_types import distinct, json_key
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.toml import read_toml

if TYPE_CHECKING:
    from jsonschema_rs import Validator

from .model import AnyValue, Array, Const, Field, Map, Object, Protocol, Ref, Scalar, Tuple, Type, Union, is_implied
from .schema import schema_of

_TEXT = "example"
_TABLES = read_toml(Path(__file__).with_suffix(".toml"))
_FORMATS: Mapping[str, str] = _TABLES["formats"]
_GUESSES = (_TEXT, *_FORMATS.values(), *_TABLES["guesses"])
"""Texts that a `pattern` may accept."""

_ANY: tuple[Any, ...] = ({}, _TEXT, 1, 1.5, True, [], None)
_LONGEST = 1000
_MOST = 120
"""How many values of one definition or member are made."""

_FEW = 20
"""How many values of the items of an array are used."""

_MIXED = 4
"""How many values of each of two members are combined."""

_MAX_BACKTRACKS = 10_000
"""How many steps a pattern may take back on one text."""

_ABSENT: Any = object()


class Unfit(Exception):
    """No value that a type accepts can be found, or a value is none that it accepts."""


@dataclass(frozen=True)
class Code:
    """Python source that stands for a value, such as `params.uri`."""

    text: str


def example(protocol: Protocol, type: Type, *, full: bool = False) -> Any:
    """Return a small JSON value that `type` accepts; raise `Unfit` where none can be found without searching.

    Args:
        protocol: Where the definitions are.
        type: The type.
        full: Whether optional members are there, too, and arrays have an item.
    """
    return Examples(protocol).one(type, full=full)


def fits(protocol: Protocol, type: Type, value: Any) -> bool:
    """Return whether `type` accepts `value`; members with a default may be missing, and code fits everywhere."""
    if isinstance(value, Code):
        return True
    match type:
        case Ref(name):
            return fits(protocol, protocol.definitions[name].type, value)
        case AnyValue():
            return True
        case Scalar():
            return _is_scalar(type, value)
        case Const(values):
            return json_key(value) in map(json_key, values)
        case Tuple(prefix=prefix, least=least, rest=rest):
            if not is_array(value) or len(value) < least or (rest is None and len(value) > len(prefix)):
                return False
            kinds = itertools.chain(prefix, itertools.repeat(AnyValue() if rest is None else rest))
            return all(fits(protocol, kind, item) for kind, item in zip(kinds, value, strict=False))
        case Array(items, constraints):
            limits = dict(constraints)
            if not is_array(value) or not limits.get("minItems", 0) <= len(value) <= limits.get("maxItems", math.inf):
                return False
            return all(fits(protocol, items, item) for item in value)
        case Map(values):
            return is_object(value) and all(fits(protocol, values, member) for member in value.values())
        case Union(members):
            return any(fits(protocol, member, value) for member in members)
        case Object(fields, extra):
            if not is_object(value) or any(_is_needed(field) and field.wire not in value for field in fields):
                return False
            types = {field.wire: field.type for field in fields}
            given = ((types.get(wire, extra), member) for wire, member in value.items())
            return all(known is not None and fits(protocol, known, member) for known, member in given)


def scalars(type: Scalar, name: str = "") -> Iterator[Any]:
    """Make values of a scalar: the likeliest first, then those at its limits and just beyond.

    Args:
        type: The scalar.
        name: The name of the member that it is for, a hint at its meaning.
    """
    limits = dict(type.constraints)
    match type.kind:
        case "string":
            yield _FORMATS.get(type.format or "", _FORMATS["date-time"] if re.search("[a-z]At$", name) else _TEXT)
            lengths = [value + step for keyword, value in limits.items() if keyword != "pattern" for step in (0, 1, -1)]
            yield from (_TEXT[:length].ljust(length, "e") for length in lengths if 0 <= length <= _LONGEST)
            yield from _GUESSES if "pattern" in limits else ()
            yield from [limits["pattern"].strip("^$")] if "pattern" in limits else ()
        case "integer" | "number":
            step = limits.get("multipleOf", 1)
            yield from (1, 0, step)
            for limit in limits.values():
                yield from (value for value in _around(limit, step) if type.kind == "number" or value % 1 == 0)
            yield from (1.5, -1) if type.kind == "number" else (-1,)
        case "boolean":
            yield from (True, False)
        case "null":
            yield None


def _around(limit: float, step: float) -> Iterator[float]:
    """Yield the numbers at a limit and just beyond it; `step` is the distance of valid numbers."""
    yield limit
    if is_large := abs(limit) >= 2**53:  # doubles have no fractions there, and integers may be longer
        limit, step = int(limit), math.ceil(step)
    near = limit // step * step
    yield from (near, near + step, near - step, limit + 1, limit - 1, 2 * limit)
    yield from () if is_large else (limit + 0.5, limit - 0.5)


class Examples:
    """Makes example values of types.

    Args:
        protocol: Where the definitions are.
        pool: Scalars that are worth a try everywhere.
    """

    def __init__(self, protocol: Protocol, pool: Iterable[Any] = ()) -> None:
        self._protocol = protocol
        self._pool = distinct(pool)
        self._known: dict[tuple[str, bool], Any] = {}
        self._several: dict[str, list[Any]] = {}

    def one(self, type: Type, *, full: bool = False) -> Any:
        """Return a small value that `type` accepts, with all optional members where it is to be `full`.

        Raises:
            Unfit: There is none, or none that can be found without searching.
        """
        return self._one(type, "", full, ())

    def _one(self, type: Type, name: str, full: bool, inside: tuple[str, ...]) -> Any:
        """Return a value for a member of that `name`, `inside` of definitions that are being made."""
        match type:
            case AnyValue():
                return _TEXT
            case Scalar():
                return _first(value for value in scalars(type, name) if _is_scalar(type, value))
            case Const(values):
                return values[0]
            case Tuple(prefix=prefix, least=least):
                return [self._one(item, name, full, inside) for item in prefix[: None if full else least]]
            case Array(items, constraints):
                return self._items(items, dict(constraints), name, full, inside)
            case Map():
                return {}
            case Ref(definition) if definition in inside:
                raise Unfit(f"{definition} contains itself")
            case Ref(definition):
                if (definition, full) not in self._known:
                    made = self._one(self._protocol.definitions[definition].type, name, full, (*inside, definition))
                    if not name:
                        self._known[definition, full] = made
                    return made
                return self._known[definition, full]
            case Union(members):
                return min(self._each(members, name, full, inside), key=_size, default=None) if members else None
            case Object(fields):
                found = {field.wire: self._field(field, full, inside) for field in fields}
                return {wire: value for wire, value in found.items() if value is not _ABSENT}

    def _items(self, items: Type, limits: Mapping[str, Any], name: str, full: bool, inside: tuple[str, ...]) -> Any:
        least: int = limits.get("minItems", 0)
        wanted = max(least, 1) if full and limits.get("maxItems", 1) else least
        try:
            return [self._one(items, name, full, inside) for _ in range(wanted)]
        except Unfit:
            if least:
                raise
            return []

    def _field(self, field: Field, full: bool, inside: tuple[str, ...]) -> Any:
        if field.default is not None and field.required:
            return field.default
        if not field.required and not full:
            return _ABSENT
        try:
            return self._one(field.type, field.wire, full, inside)
        except Unfit:
            if field.required:
                raise
            return _ABSENT

    def _each(self, members: Sequence[Type], name: str, full: bool, inside: tuple[str, ...]) -> list[Any]:
        found: list[Any] = []
        for member in members:
            with suppress(Unfit):
                found.append(self._one(member, name, full, inside))
        if not found:
            raise Unfit("no member of the union has an example")
        return found

    def several(self, type: Type) -> Iterator[Any]:
        """Yield values of different kinds, and values at the limits of `type` or just beyond."""
        match type:
            case AnyValue():
                yield from _ANY
            case Scalar():
                yield from scalars(type)
                yield from (value for value in self._pool if _is_scalar(Scalar(type.kind), value))
            case Const(values):
                yield from values
            case Ref(name):
                if name not in self._several:
                    self._several[name] = list(_ANY)  # for a type that contains itself
                    self._several[name] = self._best(self._protocol.definitions[name].type)
                yield from self._several[name]
            case Union(members):
                yield from _by_turns(map(self.several, members))
            case Tuple(prefix=prefix, least=least, rest=rest):
                lists = [self._best(item)[:_FEW] for item in prefix]
                whole = [values[0] for values in lists]
                yield from (whole, whole[:least])
                yield from ([*whole[:at], one, *whole[at + 1 :]] for at, values in enumerate(lists) for one in values)
                yield from () if rest is None else ([*whole, one] for one in self._best(rest)[:_FEW])
            case Array(items, constraints):
                yield from self._arrays(items, [limit for _, limit in constraints])
            case Map(values):
                yield {}
                yield from ({"key": value} for value in self._best(values))
            case Object():
                yield from self._objects(type)

    def _best(self, type: Type) -> list[Any]:
        """Return some values of `type`, accepted values first."""
        values = distinct(itertools.islice(self.several(type), _MOST)) or [None]
        return sorted(values, key=lambda value: not fits(self._protocol, type, value))

    def _arrays(self, items: Type, limits: Sequence[int]) -> Iterator[Any]:
        """Make arrays of all lengths that are mentioned, with equal and with different items."""
        values = self._best(items)[:_FEW]
        mentioned = [number for number in self._pool if isinstance(number, int) and 0 <= number <= 20]
        lengths = {0, 1, 2, *mentioned, *(limit + step for limit in limits if limit <= 100 for step in (-1, 0, 1))}
        for length in sorted(length for length in lengths if length >= 0):
            yield [values[index % len(values)] for index in range(length)]
            yield values[:1] * length
        yield from ([value] for value in values)

    def _objects(self, type: Object) -> Iterator[Any]:
        """Yield objects with the required members, then with one optional member, with all, and with some."""
        known = {field.wire: self._best(field.type) for field in type.fields}
        if type.extra is not None and not is_implied(type.extra):
            known["key"] = self._best(type.extra)[:_FEW]
        base = {field.wire: known[field.wire][0] for field in type.fields if field.required}
        yield base
        yield from _by_turns([{**base, name: value} for value in values] for name, values in known.items())
        whole = {name: values[0] for name, values in known.items()}
        yield whole
        for name in known:
            yield {key: value for key, value in whole.items() if key != name}
        for one, other in itertools.combinations(known, 2):
            pairs = itertools.product(known[one][:_MIXED], known[other][:_MIXED])
            yield from ({**base, one: first, other: second} for first, second in pairs)


def _first(values: Iterable[Any]) -> Any:
    for value in values:
        return value
    raise Unfit("no value was found that the limits allow")


def _is_needed(field: Field) -> bool:
    return field.required and field.default is None


def _is_scalar(type: Scalar, value: Any) -> bool:
    with suppress(ValueError):  # for a pattern or a text that no reader of JSON Schema takes
        return _validator(type).is_valid(value)
    return False


@lru_cache(1000)
def _validator(type: Scalar) -> Validator:
    from jsonschema_rs import FancyRegexOptions, validator_for  # it takes time to load

    return validator_for(schema_of(type), pattern_options=FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKS))


def _by_turns(several: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Yield the first value of each, then the second of each, so that a short prefix has values of all."""
    for row in itertools.zip_longest(*several, fillvalue=_ABSENT):
        yield from (value for value in row if value is not _ABSENT)


def _size(value: Any) -> int:
    """Return the length of a value as JSON; 0 for null."""
    return 0 if value is None else len(json.dumps(value))
