"""Read `bridges.toml`: the treatment of values without a counterpart in the target, with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any, Literal, TypeAlias, cast

from mcp_bindgen.ir.json_form import Flag, List, MaybeAny, Text, Texts
from mcp_bindgen.spec.errors import BadInput, locating
from mcp_bindgen.spec.json import is_object, join
from mcp_bindgen.spec.kinds import JSON, OBJECT, TEXT, TEXTS, Kind, one_of
from mcp_bindgen.spec.toml import read_toml

Path: TypeAlias = tuple[str, ...]
"""Path of a value: a definition and a member, or an alternative of a union there; for methods and errors their name."""

Action = Literal["refuse", "drop", "keep", "adapter", "by", "give", "rename", "move", "wrap", "merge", "same_as"]

ARROW = " -> "
ERROR = "error"
"""The first part of the path of an error; its name follows."""

ANY = "*"
"""The first part of a path that stands for all definitions."""

ONLY_ITEM = "[]"
"""The step of a place into an array with exactly one item."""

_YES = Kind(lambda value: value is True, "true, or leave it out")
_FUNCTION = re.compile(r"[a-z][a-z0-9_]*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_ACTIONS = {
    "do": one_of("refuse", "drop", "keep", "adapter"),
    "by": Kind(
        lambda value: isinstance(value, str) and _FUNCTION.fullmatch(value) is not None,
        'the name of a function of mcp_bindgen.bridging.rules, or of yours as "package.module:function"',
    ),
    "give": JSON,
    "rename": TEXT,
    "move": Kind(
        lambda value: TEXTS.fits(value) and len(value) > 1 and ONLY_ITEM not in value,
        'the members on the way in the target, as in ["settings", "mode"]',
    ),
    "wrap": TEXT,
    "merge": TEXT,
    "same_as": TEXT,
}
_KEYS: dict[str, Kind] = {
    **_ACTIONS,
    "item": OBJECT,
    "member": TEXT,
    "because": TEXT,
    "at": TEXTS,
    "capability": TEXT,
    "lossless": _YES,
    "for": TEXTS,
}


@dataclass(frozen=True)
class Item:
    """The step of a place to an item of an array.

    Attributes:
        members: The members of a new item, beside the value. The first one tells the item from other items.
    """

    members: dict[str, Any] = field(hash=False)


Place: TypeAlias = tuple[str | Item, ...]
"""The steps from an object to a value inside of it: names of members, `ONLY_ITEM`, and items."""


_LIMITS = {
    ONLY_ITEM: ": an array with another number of items is refused",
    "merge": ": only one item becomes a member, and other items are left out",
}
"""How the opposite of a move limits the values, by the last step."""


@dataclass(frozen=True)
class Rule:
    """The action for a difference, and the reason.

    Attributes:
        action: The action; `adapter` leaves the conversion to the adapter between the eras.
        because: The reason.
        value: The value of an action with a value, as in the file: the name of a function for `by`, the value of a
            missing member for `give`, the name of the target's member for `rename` and of its error for `same_as`.
        at: The definition or the member to which the function is applied, if not the path itself.
        capability: The missing capability that a refusal names.
        lossless: True if the conversion loses nothing.
        methods: The methods to which the rule applies; empty for all.
        path: Path of the value.
        take: For an action that moves a value: its place in the source, below the definition of the path.
        put: Likewise, its place in the target.
        leave: Items of the source's array that `give` added in the opposite step; they are left out without a loss.
    """

    action: Action
    because: str
    value: MaybeAny = field(default=None, hash=False)
    at: Texts = ()
    capability: Text = ""
    lossless: Flag = False
    methods: Texts = ()
    path: Texts = ()
    take: List[str | Item] = ()
    put: List[str | Item] = ()
    leave: List[Any] = field(default=(), hash=False)

    @property
    def is_users(self) -> bool:
        """True if a function of the user converts the value."""
        return self.action == "by" and ":" in self.value

    @property
    def destination(self) -> str:
        """The place to which a value is moved, as people read it."""
        return ".".join(step if isinstance(step, str) else ONLY_ITEM for step in self.put)

    @property
    def may_lose(self) -> bool:
        """True if the conversion may lose or refuse values."""
        return not self.lossless and self.action not in ("rename", "move") and (not self.put or len(self.take) > 1)

    def opposite(self) -> Rule:
        """Return the rule of the opposite step for a value that this rule moves."""
        if not self.put:
            return replace(self, value=self.path[0], path=(self.value,))
        names = tuple(step for step in self.put if isinstance(step, str))
        place = names if names == self.put else (*names[:1], *self.path[1:])
        value = self.path[-1] if self.action == "rename" else self.value
        because = self.because + _LIMITS.get("merge" if names != self.put else names[-1], "")
        path = (*self.path[:1], *place)
        return replace(self, value=value, because=because, path=path, take=self.put, put=self.take)


Rules: TypeAlias = Mapping[Path, Rule]
"""Path -> rule, for one step."""


def read_rules(*files: File) -> dict[tuple[str, str], Rules]:
    """Return source and target -> the rules of that step, of all files that are there.

    Raises:
        BadInput: A file is not TOML, or says something that no plan would read.
    """
    found: dict[tuple[str, str], dict[Path, Rule]] = {}
    for file in files:
        if not file.exists():
            continue
        with locating(file):
            for step, table in read_toml(file).items():
                source, _, target = step.partition(ARROW)
                if not target or not is_object(table):
                    raise BadInput(
                        f"{step!r} is no step", pointer=join("", step), fix='write ["2025-06-18 -> 2025-11-25"]'
                    )
                rules = found.setdefault((source, target), {})
                for path, rule in _rules(table, (), join("", step)):
                    if path in rules:
                        raise BadInput(f"{'.'.join(path)} has a rule already", pointer=join("", step), fix="keep one")
                    rules[path] = rule
    return dict(found)


def _rules(table: Mapping[str, Any], path: Path, at: str) -> Iterator[tuple[Path, Rule]]:
    for key, entry in table.items():
        place, here = (*path, key), join(at, key)
        if not is_object(entry):
            raise BadInput(f"{key!r} says nothing here", pointer=here, fix="write PLACE = { do = ..., because = ... }")
        if isinstance(entry.get("because"), str):
            yield place, _rule(entry, place, here)
        elif not entry or not all(map(is_object, entry.values())):
            raise BadInput("a rule without a reason", pointer=here, fix='give it because = "..."')
        else:
            yield from _rules(entry, place, here)


def _rule(entry: Mapping[str, Any], path: Path, at: str) -> Rule:
    for key, value in entry.items():
        if key not in _KEYS:
            raise BadInput(f"{key!r} says nothing here", pointer=join(at, key), fix=f"use {', '.join(_KEYS)}")
        _KEYS[key].check(value, key, join(at, key))
    if entry.get("do") == "drop" and len(path) != 2:
        raise BadInput("`drop` is for members", pointer=at, fix="write Definition.member = { ... }")
    actions = [key for key in _ACTIONS if key in entry]
    if len(actions) != 1:
        raise BadInput("a rule does one thing", pointer=at, fix=f"give it one of {', '.join(_ACTIONS)}")
    (action,) = actions
    value = entry[action]
    put = _place(action, entry, path, at)
    return Rule(
        action=cast(Action, value if action == "do" else action),
        because=entry["because"],
        value=None if action == "do" else value,
        at=tuple(entry.get("at", ())),
        capability=entry.get("capability", ""),
        lossless=entry.get("lossless", False),
        methods=tuple(entry.get("for", ())),
        path=path,
        take=path[1:] if put else (),
        put=put,
    )


def _place(action: str, entry: Mapping[str, Any], path: Path, at: str) -> Place:
    """Return the place in the target to which a rule moves the member of its path; empty if it moves nothing."""
    value, wire = entry[action], path[-1]
    if (action == "merge") != ("item" in entry) or (action == "merge") != ("member" in entry):
        fix = 'write { merge = "outputs", item = { format = "content" }, member = "content", because = ... }'
        raise BadInput("`merge`, `item` and `member` belong together", pointer=at, fix=fix)
    if action not in ("rename", "move", "wrap", "merge") or (action == "rename" and len(path) == 1):
        return ()
    if len(path) != 2:
        raise BadInput(f"`{action}` is for members", pointer=at, fix="write Definition.member = { ... }")
    if action == "merge":
        return (value, Item(entry["item"]), entry["member"])
    return (wire, value) if action == "wrap" else (value,) if action == "rename" else tuple(value)
