"""Places inside of objects, from and to which rules move values: their types, and the objects on the way."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.ir.examples import fits
from mcp_bindgen.ir.model import Array, Protocol, Ref, Type

from .alternatives import alternatives, label
from .rules import ONLY_ITEM, Item, Path, Place


@dataclass(frozen=True)
class Spot:
    """A place in the types of a revision.

    Attributes:
        type: The type of the value.
        path: The path of the value in the words of the schema.
        is_required: True if each object has a value there.
        holders: The type after each step of the place, resolved.
    """

    type: Type
    path: Path
    is_required: bool
    holders: tuple[Type, ...]


def find(protocol: Protocol, type: Type, place: Place, path: Path) -> Spot | None:
    """Return a place below a type, or None if values of the type have no such place."""
    is_required, holders = True, list[Type]()
    for step in place:
        holder = protocol.resolve(type)
        if isinstance(step, str) and step != ONLY_ITEM:
            member = protocol.field_of(holder, step)
            if member is None:
                return None
            path = (type.name if isinstance(type, Ref) else path[0], step)
            type, is_required = member.type, is_required and member.required
        elif not isinstance(holder, Array):
            return None
        elif isinstance(step, Item):
            fitting = [one for one in alternatives(protocol, holder.items) if _is_of(protocol, one, step)]
            if not fitting:
                return None
            type, path, is_required = fitting[0], (label(fitting[0]),), False
        else:
            type, path = holder.items, (*path, ONLY_ITEM)
        holders.append(protocol.resolve(type))
    return Spot(type, path, is_required, tuple(holders))


def _is_of(protocol: Protocol, type: Type, item: Item) -> bool:
    """Return True if an object may have the members of an item."""
    members = [(protocol.field_of(type, name), value) for name, value in item.members.items()]
    return all(member is not None and fits(protocol, member.type, value) for member, value in members)
