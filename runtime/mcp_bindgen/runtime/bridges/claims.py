"""Drop members that the source of a chain leaves open and its target types, where they hold something else.

A valid payload of an older revision may have any value there: to that revision, the name means nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..core.json_types import is_array, is_object


def drop_claimed(value: Any, location: Sequence[str | int], claims: Collection[str]) -> list[str]:
    """Drop the member that does not fit, where its name is a claim; `value` is edited in place.

    Args:
        value: The payload, converted and found to be invalid in the target.
        location: Where, by a validator: members and indexes, and perhaps names of alternatives, which are skipped.
            Where no claim is on the way, all claims below count: a validator that tried several alternatives knows no
            better.
        claims: `Chain.claims` of the payload.

    Returns:
        The names that were dropped; where there are none, the payload is simply invalid.
    """
    node = value
    for part in _path(value, location):
        if part in claims and is_object(node):
            del node[str(part)]
            return [str(part)]
        node = node[part]
    return _dropped_below(node, claims)


def _path(value: Any, location: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the way that a location leads: the longest, and of several the one that leads to its end."""
    ways: dict[tuple[str | int, ...], Any] = {(): value}
    for part in location:
        ways |= {(*way, part): node[part] for way, node in ways.items() if _has(node, part)}
    return max(reversed(ways), key=len)


def _has(node: Any, part: str | int) -> bool:
    if isinstance(part, str):
        return is_object(node) and part in node
    return is_array(node) and 0 <= part < len(node)


def _dropped_below(node: Any, claims: Collection[str]) -> list[str]:
    if is_array(node):
        return [name for item in node for name in _dropped_below(item, claims)]
    if not is_object(node):
        return []
    own = [name for name in node if name in claims]
    for name in own:
        del node[name]
    return own + [name for item in node.values() for name in _dropped_below(item, claims)]
