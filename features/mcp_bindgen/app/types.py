"""JSON values in and out of the types of a contract, for servers and clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.model.validation import problems

from .call_arguments import ABSENT


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the validator and serialiser of a type."""
    return TypeAdapter(kind)


def typed(kind: Any, value: Any, root: str, error: Callable[[list[dict[str, str]]], Exception]) -> Any:
    """Return a JSON value in a type; raise what `error` makes of the problems, whose paths begin at `root`."""
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
def _may_merge(kind: Any) -> bool:
    """Return whether two JSON values can be one in Python: items of a set, or names of members that are no texts."""

    def merges(node: Any) -> bool:
        if is_array(node):
            return any(map(merges, node))
        if not is_object(node):
            return False
        kind, names = node.get("type"), node.get("keys_schema", {}).get("type")
        by_name = names not in ("str", "any", None)
        return kind in ("set", "frozenset") or by_name or any(map(merges, node.values()))

    return merges(adapter(kind).core_schema)


def _merged(wire: Any, found: Any, path: str) -> Iterator[str]:
    """Yield the paths of the arrays and objects of which Python has fewer items or members."""
    if getattr(found, "__pydantic_root_model__", False):
        found = found.root
    if isinstance(found, set | frozenset):
        if is_array(wire) and _size(wire) != _size(found):
            yield path
    elif is_array(wire) and hasattr(found, "__iter__"):
        for index, (one, item) in enumerate(zip(wire, found, strict=False)):
            yield from _merged(one, item, f"{path}.{index}")
    elif is_object(wire):
        members: dict[Any, Any] = _members(found)
        if any(not isinstance(name, str) for name in members):
            if len(wire) != len(members):
                yield path
            members = dict(zip(wire, members.values(), strict=False))
        for name in wire.keys() & members.keys():
            yield from _merged(wire[name], members[name], f"{path}.{name}")


def _members(found: Any) -> dict[Any, Any]:
    """Return the members of an object by each wire name that they may have."""
    fields: dict[str, Any] | None = getattr(found.__class__, "__pydantic_fields__", None)
    if fields is None:
        return found if is_object(found) else getattr(found, "__dict__", {})
    members: dict[Any, Any] = {}
    for name, field in fields.items():
        aliases = getattr(field.validation_alias, "choices", [field.validation_alias or name])
        members |= dict.fromkeys((one for one in (name, *aliases) if isinstance(one, str)), getattr(found, name))
    return members


def _size(value: Any) -> int:
    """Return the number of values in an array or a set, those of arrays inside of it included."""
    return 1 + sum(map(_size, value)) if isinstance(value, list | tuple | set | frozenset) else 1  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def structured_content(result: Any) -> Any:
    """Return the structured content of a tool's result in wire form, in whatever revision; `ABSENT` if it has none."""
    members = {"structured_content", "structuredContent"}  # the latter where the revision does not know it
    return result.model_dump(include=members).get("structuredContent", ABSENT)
