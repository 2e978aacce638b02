"""Drop members that the source of a chain leaves open and its target types, where they hold something else.

A valid payload of an older revision may have any value there: to that revision, the name means nothing.
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
"""A place as a validator gives it: members and indexes, and perhaps names of alternatives, which are skipped."""

_MOST_READINGS = 10  # each finds all that is wrong, as far as what is wrong above does not hide it


def without_claims(read: Callable[[Any], T], wire: Any, claims: Collection[str]) -> T:
    """Read a payload; where that fails, read it again without the claims that do not fit.

    Args:
        read: Reads the payload from its wire form; raises `ProtocolError` where it is not valid.
        wire: The payload, converted; it is edited in place.
        claims: `Chain.claims` of the payload.

    Raises:
        ProtocolError: It is not valid without them either; the error is that of the whole payload.
    """
    try:
        return read(wire)
    except ProtocolError as error:
        first = problem = error
    dropped: list[str] = []
    for _ in range(_MOST_READINGS if claims else 0):
        found = drop_claimed(wire, _locations(problem), claims)
        if not found:
            break
        dropped += found
        try:
            typed = read(wire)
        except ProtocolError as error:
            problem = error
            continue
        names = ", ".join(sorted(set(dropped)))
        log.debug("left out, because a later revision has another use for the name: %s", names)
        return typed
    raise first


def _locations(error: ProtocolError) -> list[Location]:
    """Return where a payload was not valid: what validation said is the context of the error."""
    said = error.__context__
    if not isinstance(said, ValidationError):
        return []
    return [one["loc"] for one in said.errors(include_url=False, include_context=False, include_input=False)]


def drop_claimed(value: Any, locations: Iterable[Location], claims: Collection[str]) -> list[str]:
    """Drop the members that do not fit, where their names are claims; `value` is edited in place.

    Args:
        value: The payload, converted and found to be invalid in the target.
        locations: Where it is. Where no claim is on the way to any of them, all claims below all of them count: a
            validator that tried several alternatives knows no better.
        claims: `Chain.claims` of the payload.

    Returns:
        The names that were dropped; where there are none, the payload is simply invalid.
    """
    paths = [_path(value, location) for location in locations]
    dropped = [name for path in paths for name in _dropped_on(value, path, claims)]
    if dropped or not paths:
        return dropped
    shared = paths[0]
    for path in paths:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    for part in shared:
        value = value[part]
    return _dropped_below(value, claims)


def _path(value: Any, location: Location) -> tuple[str | int, ...]:
    """Return the way that a location leads: the longest, and of several the one that leads to its end."""
    ways: dict[tuple[str | int, ...], Any] = {(): value}
    for part in location:
        ways |= {(*way, part): node[part] for way, node in ways.items() if _has(node, part)}
    return max(reversed(ways), key=len)


def _has(node: Any, part: str | int) -> bool:
    if isinstance(part, str):
        return is_object(node) and part in node
    return is_array(node) and 0 <= part < len(node)


def _dropped_on(node: Any, path: Location, claims: Collection[str]) -> list[str]:
    for part in path:
        if not _has(node, part):
            break  # dropped already
        if isinstance(part, str) and part in claims:
            del node[part]
            return [part]
        node = node[part]
    return []


def _dropped_below(node: Any, claims: Collection[str]) -> list[str]:
    if is_array(node):
        return [name for item in node for name in _dropped_below(item, claims)]
    if not is_object(node):
        return []
    own = [name for name in node if name in claims]
    for name in own:
        del node[name]
    return own + [name for item in node.values() for name in _dropped_below(item, claims)]
