"""Removal of members that the source of a chain leaves open and its target types, if their values do not fit.

A valid payload of an older revision may hold any value there: the name means nothing in that revision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.errors import ProtocolError

T = TypeVar("T")

Location: TypeAlias = Sequence[str | int]
"""Location in a validation error: members, indexes, and names of alternatives, which are skipped."""

_MAX_READS = 10  # each reports all errors, except those that are hidden by an error above them


def read_without_collisions(read: Callable[[Any], T], wire: Any, names: Collection[str]) -> T:
    """Read a payload; if that fails, read it again without the colliding members.

    Args:
        read: Reads the payload from its wire form; raises `ProtocolError` if it is not valid.
        wire: The payload, converted; it is edited in place.
        names: `Chain.field_collisions` of the payload.

    Raises:
        ProtocolError: The payload is not valid without them either; the error describes the whole payload.
    """
    try:
        return read(wire)
    except ProtocolError as error:
        first = problem = error
    dropped: list[str] = []
    for _ in range(_MAX_READS if names else 0):
        found = drop_collisions(wire, _locations(problem), names)
        if not found:
            break
        dropped += found
        try:
            typed = read(wire)
        except ProtocolError as error:
            problem = error
            continue
        log.debug("left out, because a later revision types the name: %s", ", ".join(sorted(set(dropped))))
        return typed
    raise first


def _locations(error: ProtocolError) -> list[Location]:
    """Return the locations of validation errors, which are the context of a `ProtocolError`."""
    cause = error.__context__
    if not isinstance(cause, ValidationError):
        return []
    return [one["loc"] for one in cause.errors(include_url=False, include_context=False, include_input=False)]


def drop_collisions(value: Any, locations: Iterable[Location], names: Collection[str]) -> list[str]:
    """Drop the members at the locations of errors whose names collide; `value` is edited in place.

    Args:
        value: The payload, converted and found invalid in the target.
        locations: The locations of the errors. If no colliding member is on the path to any of them, all colliding
            members below all of them are dropped: a validator that tried several alternatives knows no better.
        names: `Chain.field_collisions` of the payload.

    Returns:
        The names that were dropped; without any, the payload is invalid for another reason.
    """
    paths = [_path(value, location) for location in locations]
    dropped = [name for path in paths for name in _dropped_on(value, path, names)]
    if dropped or not paths:
        return dropped
    shared = paths[0]
    for path in paths:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    for part in shared:
        value = value[part]
    return _dropped_below(value, names)


def _path(value: Any, location: Location) -> tuple[str | int, ...]:
    """Return the longest path that a location describes; of several, the path to its end."""
    paths: dict[tuple[str | int, ...], Any] = {(): value}
    for part in location:
        paths |= {(*path, part): node[part] for path, node in paths.items() if _has(node, part)}
    return max(reversed(paths), key=len)


def _has(node: Any, part: str | int) -> bool:
    if isinstance(part, str):
        return is_object(node) and part in node
    return is_array(node) and 0 <= part < len(node)


def _dropped_on(node: Any, path: Location, names: Collection[str]) -> list[str]:
    for part in path:
        if not _has(node, part):
            break  # dropped already
        if isinstance(part, str) and part in names:
            del node[part]
            return [part]
        node = node[part]
    return []


def _dropped_below(node: Any, names: Collection[str]) -> list[str]:
    if is_array(node):
        return [name for item in node for name in _dropped_below(item, names)]
    if not is_object(node):
        return []
    own = [name for name in node if name in names]
    for name in own:
        del node[name]
    return own + [name for item in node.values() for name in _dropped_below(item, names)]
