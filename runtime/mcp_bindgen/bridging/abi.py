"""Names that generated steps import: functions that make conversions of JSON values, and the data of a step.

Each conversion takes a value, which it may edit in place, and returns it. A value of an unexpected kind is left
unchanged; validation of the result reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, TypeAlias

from pydantic import ConfigDict, TypeAdapter
from pydantic import Field as Field

from mcp_bindgen.runtime.model.json_types import is_array, is_object, same_json
from mcp_bindgen.runtime.model.scalars import Boolean as Boolean
from mcp_bindgen.runtime.model.scalars import Integer as Integer
from mcp_bindgen.runtime.model.scalars import Number as Number

from . import rules as rules
from .chain import Conversion as Conversion
from .chain import Convert, LossReport, NotConvertible, RuleContext
from .chain import Ruling as Ruling
from .chain import Step as Step
from .chain import sequence as sequence
from .functions import user_function as user_function
from .moves import Item as Item
from .moves import Move as Move
from .moves import put, taken

Test: TypeAlias = Callable[[Any], bool]


def rule(function: Callable[[Any, RuleContext], Any], ruling: Ruling, *step: str) -> Convert:
    """Convert the value by a function; a function of the user gets the source and the target of the step."""
    return lambda value, losses: function(value, RuleContext(ruling, losses, *step))


def refuse(ruling: Ruling) -> Convert:
    """Refuse every value."""
    return lambda value, losses: RuleContext(ruling, losses).refuse()


def check(kind: Any, otherwise: Convert) -> Convert:
    """Edit the values that a type does not accept, in the strict mode of pydantic."""
    validator = cache(lambda: TypeAdapter(kind, config=ConfigDict(strict=True)).validator)
    return lambda value, losses: value if validator().isinstance_python(value) else otherwise(value, losses)


def attempt(edit: Convert, otherwise: Convert) -> Convert:
    """Edit a value, or edit it otherwise if the first edit refuses it."""

    def convert(value: Any, losses: LossReport) -> Any:
        try:
            return edit(deepcopy(value), losses)
        except NotConvertible:
            return otherwise(value, losses)

    return convert


def members(
    edits: Mapping[str, Convert] | None = None,
    *,
    fill: Mapping[str, Any] | None = None,
    default: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    lenient: Sequence[str] = (),
    move: Sequence[Move] = (),
    want: Mapping[str, Ruling] | None = None,
    only: Sequence[str] | None = None,
) -> Convert:
    """Edit the members of an object.

    Args:
        edits: Member -> conversion of its value, if the member is present.
        fill: Member -> its value in the target, also where the source has a value: the name means nothing there.
        default: Member -> its value if it is missing.
        drop: Members to leave out.
        lenient: Members to leave out, as a loss, if their conversion refuses them.
        move: Values with another place in the target.
        want: Members without which the object is refused.
        only: Members that the target takes, if it takes no further ones.
    """
    filled, defaults = dict(fill or {}), dict(default or {})
    steps, wants = tuple((edits or {}).items()), tuple((want or {}).items())
    given_values = (*filled.values(), *defaults.values())
    has_containers = any(isinstance(one, dict | list) for one in given_values)

    def convert(value: Any, losses: LossReport) -> Any:
        if not is_object(value):
            return value
        moved: Sequence[tuple[Move, Any]] = ()
        present = steps
        if move:
            moved = taken(value, move, losses)
            present = tuple(one for one in steps if one[0] in value)
        for name in drop:
            value.pop(name, None)
        for name, given in defaults.items():
            if name not in value:
                value[name] = deepcopy(given) if has_containers else given
        for one, found in moved:
            value = put(value, one.put, one.converted(found, losses))
        for name, edit in present:  # after the moves, because an edit may want a member that is moved there
            if name in value:
                try:
                    value[name] = edit(value[name], losses)
                except NotConvertible as error:
                    if name not in lenient:
                        raise error.inside(name) from None
                    losses.record(error.place, error.reason)
                    del value[name]
        for name, ruling in wants:
            if name not in value:
                RuleContext(ruling, losses).refuse()
        value.update(deepcopy(filled) if has_containers else filled)
        return value if only is None else {name: value[name] for name in value if name in only}

    return convert


def items(edit: Convert) -> Convert:
    """Edit each item of an array."""

    def convert(value: object, losses: LossReport) -> Any:
        made: list[Any] = []
        try:
            for item in value if is_array(value) else ():
                made.append(edit(item, losses))
        except NotConvertible as error:
            raise error.inside(len(made)) from None
        return made if is_array(value) else value

    return convert


def values(edit: Convert) -> Convert:
    """Edit each value of an object."""
    return lambda value, losses: members(dict.fromkeys(value, edit))(value, losses) if is_object(value) else value


def cases(*pairs: tuple[Test, Convert], rest: Convert | None = None) -> Convert:
    """Edit alternatives: apply the conversion of each test that the value passes, or `rest` if it passes none."""

    def convert(value: object, losses: LossReport) -> Any:
        is_known = False
        for test, edit in pairs:
            if test(value):
                value, is_known = edit(value, losses), True
        return value if is_known or rest is None else rest(value, losses)

    return convert


def keep(value: object, losses: LossReport) -> Any:
    """Leave a value unchanged."""
    return value


def later(edit: Callable[[], Convert]) -> Convert:
    """Edit by a conversion that is defined later, for definitions that contain themselves."""
    return lambda value, losses: edit()(value, losses)


def has(member: str, *, lacks: Sequence[str] = ()) -> Test:
    """Test whether a value is an object with a member, and without at least one member of `lacks`."""
    return lambda value: is_object(value) and member in value and not (lacks and all(name in value for name in lacks))


def tagged(member: str, tag: object) -> Test:
    """Test whether a value is an object with a constant."""
    return lambda value: is_object(value) and same_json(value.get(member), tag)


def of_kind(kind: type) -> Test:
    """Test the kind of a JSON value: `dict`, `list`, `str`, `bool`, `int` or `float` for any number."""
    if kind in (int, float):
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)
