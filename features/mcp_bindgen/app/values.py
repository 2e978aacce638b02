"""JSON values in and out of the Python types of a contract, for servers and clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from functools import cache
from inspect import formatannotation
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.model.scalars import Json
from mcp_bindgen.runtime.model.validation import problems

_MODULES = re.compile(r"[\w.<>]+\.(?=[^\W\d])")

TypeForm: TypeAlias = Any
"""An annotation: a class, a union, an alias."""


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""Marks an argument as not given, where `None` is a value: `null`."""


def arguments(values: Mapping[str, object], nullable: Collection[str] = ()) -> dict[str, Json]:
    """Return the arguments of a tool in wire form, without absent ones.

    Args:
        values: Wire name -> value; models and lists of models are allowed.
        nullable: The names for which `None` means `null`; such an argument is absent only as `ABSENT`.

    Raises:
        ValueError: A number is NaN or an infinity.
    """
    absent = {name for name, value in values.items() if value is ABSENT or (value is None and name not in nullable)}
    return whole({name: value for name, value in values.items() if name not in absent})


def whole(values: Mapping[str, object] | BaseModel) -> dict[str, Json]:
    """Return the arguments of a tool that takes them as one value, in wire form.

    Raises:
        ValueError: A number is NaN or an infinity.
    """
    try:
        wire: dict[str, Json] = from_json(to_json(values), allow_inf_nan=False)
    except ValueError:
        named = (f"the argument {name!r}" for name, value in dict(values).items() if not _is_finite(value))
        raise ValueError(f"{next(named, 'an argument')} contains NaN or an infinity, which JSON lacks") from None
    return wire


def _is_finite(value: object) -> bool:
    try:
        from_json(to_json(value), allow_inf_nan=False)
    except ValueError:
        return False
    return True


def texts(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the arguments of a prompt, wire name -> text, without values that are `None`."""
    return {name: value for name, value in values.items() if value is not None}


def type_name(kind: TypeForm) -> str:
    """Return an annotation as its author wrote it, without the names of modules."""
    return _MODULES.sub("", formatannotation(kind))


@cache
def adapter(kind: TypeForm) -> TypeAdapter[Any]:
    """Return the validator and serialiser of a type."""
    return TypeAdapter(kind)


def typed(kind: TypeForm, value: object, root: str, error: Callable[[list[dict[str, str]]], Exception]) -> Any:
    """Return a JSON value in a type.

    Args:
        kind: The type.
        value: The JSON value.
        root: The path of the value, at which the paths of problems begin.
        error: Makes the error to raise from the problems, each with `path` and `problem`.
    """
    data = to_json(value)
    try:
        found = adapter(kind).validate_json(data)
    except ValidationError as wrong:
        raise error(problems(wrong, root, data)) from None
    if _may_merge(kind):
        merged = list(_merged(value, found, root))
        if merged:
            raise error([{"path": path, "problem": "has two values that are the same to the tool"} for path in merged])
    return found


@cache
def _may_merge(kind: TypeForm) -> bool:
    """Return whether Python may merge JSON values: items of a set, or members whose names are not texts."""

    def merges(node: object) -> bool:
        if is_array(node):
            return any(map(merges, node))
        if not is_object(node):
            return False
        names = node.get("keys_schema", {}).get("type")
        is_merging = node.get("type") in ("set", "frozenset") or names not in ("str", "any", None)
        return is_merging or any(map(merges, node.values()))

    return merges(adapter(kind).core_schema)


def _merged(wire: object, found: Any, path: str) -> Iterator[str]:
    """Yield the paths of the arrays and objects that have fewer items or members in Python."""
    if getattr(found, "__pydantic_root_model__", False):
        found = found.root
    if isinstance(found, set | frozenset):
        if is_array(wire) and _size(wire) != _size(found):  # pyright: ignore[reportUnknownArgumentType]
            yield path
    elif is_array(wire) and hasattr(found, "__iter__"):
        for index, (one, item) in enumerate(zip(wire, found, strict=False)):
            yield from _merged(one, item, f"{path}.{index}")
    elif is_object(wire):
        members: dict[Any, object] = _members(found)
        if any(not isinstance(name, str) for name in members):
            if len(wire) != len(members):
                yield path
            members = dict(zip(wire, members.values(), strict=False))
        for name in wire.keys() & members.keys():
            yield from _merged(wire[name], members[name], f"{path}.{name}")


def _members(found: object) -> dict[Any, object]:
    """Return the members of an object by each wire name that they may have."""
    if is_object(found):
        return found
    members: dict[Any, object] = dict(getattr(found, "__dict__", {}))
    fields: dict[str, Any] = getattr(type(found), "__pydantic_fields__", {})
    for name, field in fields.items():
        aliases = getattr(field.validation_alias, "choices", [field.validation_alias])
        members |= dict.fromkeys((one for one in aliases if isinstance(one, str)), getattr(found, name))
    return members


def _size(value: object) -> int:
    """Return the number of values in an array or a set, including nested arrays."""
    return 1 + sum(map(_size, value)) if isinstance(value, list | tuple | set | frozenset) else 1  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def structured_content(result: BaseModel) -> Any:
    """Return the structured content of a tool's result of any revision in wire form; `ABSENT` if it has none."""
    members = {"structured_content", "structuredContent"}  # the latter where the revision does not define it
    return result.model_dump(include=members).get("structuredContent", ABSENT)
