"""Read what a revision leaves open with the types of another one, which may claim the name for something else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from ...core.errors import ProtocolError
from ...core.json_types import is_array, is_object
from ...core.logs import log

T = TypeVar("T")


def without_claims(read: Callable[[Any], T], wire: Any, names: Collection[str]) -> T:
    """Read a payload; where that fails, read it once more without the members that may hold anything.

    Args:
        read: Reads the payload from its wire form; raises `ProtocolError` where it is not valid.
        wire: The payload in wire form.
        names: The members that the revision of the payload leaves open, and that of the reader types.

    Raises:
        ProtocolError: It is not valid without them either; the error is that of the whole payload.
    """
    try:
        return read(wire)
    except ProtocolError as error:
        clashing = _present(wire, names)
        if not clashing:
            raise
        try:
            typed = read(_without(wire, clashing))
        except ProtocolError:
            raise error from None
        for name in sorted(clashing):
            try:
                typed = read(_without(wire, clashing - {name}))
            except ProtocolError:
                continue
            clashing = clashing - {name}
        log.debug("left out, because a later revision has another use for the name: %s", ", ".join(sorted(clashing)))
        return typed


def _present(value: Any, names: Collection[str]) -> frozenset[str]:
    """Return which of the names members have, at any depth."""
    if is_object(value):
        own = frozenset(name for name in value if name in names)
        return own.union(*(_present(one, names) for one in value.values()))
    return frozenset[str]().union(*(_present(one, names) for one in value)) if is_array(value) else frozenset()


def _without(value: Any, names: Collection[str]) -> Any:
    """Return a JSON value without the members of these names, at any depth."""
    if is_object(value):
        return {name: _without(one, names) for name, one in value.items() if name not in names}
    return [_without(one, names) for one in value] if is_array(value) else value
