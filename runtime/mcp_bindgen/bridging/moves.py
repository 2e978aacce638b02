"""Moves of values between places of an object, for members that another revision has elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .chain import Convert, LossReport, NotConvertible, RuleContext, Ruling

ONLY_ITEM = "[]"
"""The step of a place into an array with exactly one item."""

_NOTHING: Any = object()


@dataclass(frozen=True)
class Item:
    """The step of a place to an item of an array.

    Attributes:
        members: The members of a new item, beside the value. The first one tells the item from other items.
    """

    members: Mapping[str, Any]

    def find(self, array: Sequence[Any], inner: str) -> int | None:
        """Return the index of the most similar item that has the member `inner`, or None."""
        tag = dict([*self.members.items()][:1]).items()
        found = [index for index, one in enumerate(array) if is_object(one) and inner in one and tag <= one.items()]
        return max(found, key=lambda index: self.members.items() <= array[index].items(), default=None)


Place: TypeAlias = Sequence[str | Item]
"""The steps from an object to a value inside of it: names of members, `ONLY_ITEM`, and items."""


@dataclass(frozen=True)
class Move:
    """Move of a value.

    Attributes:
        take: The place of the value in the source.
        put: Its place in the target.
        ruling: The rule.
        edit: The conversion of the value.
        keeps: True if the target knows the first member of `take`, so that the rest of it stays. Otherwise an empty
            object goes, and an array goes with a loss of its items.
        leave: Items of that array that are no loss.
    """

    take: Place
    put: Place
    ruling: Ruling
    edit: Convert
    keeps: bool = False
    leave: Sequence[Any] = ()

    def converted(self, value: Any, losses: LossReport) -> Any:
        """Return the converted value; a refusal points to the member from which the value was taken."""
        try:
            return self.edit(value, losses)
        except NotConvertible as error:
            known = error.pointer if len(self.take) == 1 else ""
            raise NotConvertible(error.place, error.reason, error.capability, known).inside(str(self.take[0])) from None


def taken(value: dict[str, Any], moves: Sequence[Move], losses: LossReport) -> list[tuple[Move, Any]]:
    """Take the values of moves out of an object, which is edited in place; raise `NotConvertible`."""
    found = [(move, _take(value, move.take, RuleContext(move.ruling, losses), move.keeps)) for move in moves]
    for move, one in found:
        first = str(move.take[0])
        is_split = is_array(value.get(first)) and len(move.take) > 1 and not move.keeps
        is_replaced = one is not _NOTHING and move.put == move.take[:1]
        if is_split or is_replaced:
            rest = value.pop(first, None)
            if any(item not in move.leave for item in rest or ()):
                losses.record(move.ruling.place, move.ruling.reason)
    return [(move, one) for move, one in found if one is not _NOTHING]


def _take(holder: Any, place: Place, context: RuleContext, keeps: bool = False) -> Any:
    """Remove the value at a place and return it; return `_NOTHING` if it is not there."""
    step, inner = place[0], place[1:]
    key: Any = None
    if isinstance(step, Item):
        key = step.find(holder, str(inner[0])) if is_array(holder) else None
    elif step != ONLY_ITEM:
        key = step if is_object(holder) and step in holder else None
    elif is_array(holder):
        key = 0 if len(holder) == 1 else context.refuse()
    if key is None or not inner:
        return _NOTHING if key is None else holder.pop(key)
    found = _take(holder[key], inner, context)
    if found is not _NOTHING and (isinstance(step, Item) or not (holder[key] or keeps)):
        rest = holder.pop(key)
        if isinstance(step, Item) and rest != step.members:
            context.record_loss()
    return found


def put(holder: Any, place: Place, value: Any) -> Any:
    """Return an object, an array or another value with a value at a place inside of it."""
    if not place:
        return value
    step, inner = place[0], place[1:]
    if isinstance(step, Item):
        return [*(holder if is_array(holder) else ()), put(deepcopy(step.members), inner, value)]
    if step == ONLY_ITEM:
        return [put(None, inner, value)]
    held = holder if is_object(holder) else {}
    return {**held, step: put(held.get(step), inner, value)}
