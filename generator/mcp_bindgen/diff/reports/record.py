"""Turn dataclasses into JSON: members in camel case, names of severities in lower case."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any, cast

from pydantic.alias_generators import to_camel


def as_json(value: Any, or_null: Collection[str] = ()) -> Any:
    """Return `value` as JSON.

    Args:
        value: A dataclass, or what stands in one.
        or_null: The fields that are `null` where they are empty.
    """
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return {to_camel(name): as_json(one) if one or name not in or_null else None for name, one in given.items()}
    if isinstance(value, IntEnum):
        return value.name.lower().replace("_", "-")
    return [as_json(one) for one in cast(tuple[object, ...], value)] if isinstance(value, tuple) else value
