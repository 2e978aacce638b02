"""Arguments as typed clients send them: those that were not given are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.model.scalars import Json


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""Stands for an argument that is not given, where `None` is a value: `null`."""


def arguments(values: Mapping[str, Any], nullable: Collection[str] = ()) -> dict[str, Json]:
    """Return the arguments of a tool in wire form.

    Args:
        values: Wire name -> value; models and lists of them are fine.
        nullable: The names for which `None` means `null`, and only `ABSENT` that nothing was given.
    """
    absent = {name for name, value in values.items() if value is ABSENT or (value is None and name not in nullable)}
    return whole({name: value for name, value in values.items() if name not in absent})


def whole(values: Mapping[str, Any] | BaseModel) -> dict[str, Json]:
    """Return the arguments of a tool that takes them as one value, in wire form.

    Raises:
        ValueError: There is a number among them that JSON does not have, NaN or an infinity.
    """
    try:
        wire: dict[str, Json] = from_json(to_json(values), allow_inf_nan=False)
    except ValueError:
        raise ValueError(f"{_without_json(values)} has NaN or an infinity in it, which JSON does not have") from None
    return wire


def _without_json(values: Mapping[str, Any] | BaseModel) -> str:
    """Return which argument is not JSON."""
    for name, value in dict(values).items():
        try:
            from_json(to_json(value), allow_inf_nan=False)
        except ValueError:
            return f"the argument {name!r}"
    return "an argument"


def texts(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the arguments of a prompt, wire name -> text, without those that are `None`."""
    return {name: value for name, value in values.items() if value is not None}
