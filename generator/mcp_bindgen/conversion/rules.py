"""Read `bridges.toml`: the treatment of values without a counterpart in the target, with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Literal, TypeAlias, cast

from mcp_bindgen.ir.json_form import Flag, MaybeAny, Text, Texts
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.kinds import JSON, TEXT, TEXTS, Kind, one_of
from mcp_bindgen.spec.pointer import join
from mcp_bindgen.spec.toml import read_toml

Path: TypeAlias = tuple[str, ...]
"""Path of a value: a definition and a member, or an alternative of a union there; for methods and errors their name."""

Action = Literal["refuse", "drop", "keep", "adapter", "by", "give", "rename", "same_as"]

ARROW = " -> "
ERROR = "error"
"""The first part of the path of an error; its name follows."""

ANY = "*"
"""The first part of a path that stands for all definitions."""

_YES = Kind(lambda value: value is True, "true, or leave it out")
_FUNCTION = re.compile(r"[a-z][a-z0-9_]*")
_ACTIONS = {
    "do": one_of("refuse", "drop", "keep", "adapter"),
    "by": Kind(
        lambda value: isinstance(value, str) and _FUNCTION.fullmatch(value) is not None, "the name of a function"
    ),
    "give": JSON,
    "rename": TEXT,
    "same_as": TEXT,
}
_KEYS: dict[str, Kind] = {
    **_ACTIONS,
    "because": TEXT,
    "at": TEXTS,
    "capability": TEXT,
    "lossless": _YES,
    "for": TEXTS,
}


@dataclass(frozen=True)
class Rule:
    """The action for a difference, and the reason.

    Attributes:
        action: The action; `adapter` leaves the conversion to the adapter between the eras.
        because: The reason.
        value: The value of the last four actions: the name of a function for `by`, the value of a missing member for
            `give`, the name of the target's member for `rename` and of its error for `same_as`.
        at: The definition or the member to which the function is applied, if not the path itself.
        capability: The missing capability that a refusal names.
        lossless: True if the conversion loses nothing.
        methods: The methods to which the rule applies; empty for all.
        path: Path of the value.
    """

    action: Action
    because: str
    value: MaybeAny = field(default=None, hash=False)
    at: Texts = ()
    capability: Text = ""
    lossless: Flag = False
    methods: Texts = ()
    path: Texts = ()


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
    actions = [key for key in _ACTIONS if key in entry]
    if len(actions) != 1:
        raise BadInput("a rule does one thing", pointer=at, fix=f"give it one of {', '.join(_ACTIONS)}")
    (action,) = actions
    value = entry[action]
    return Rule(
        action=cast(Action, value if action == "do" else action),
        because=entry["because"],
        value=None if action == "do" else value,
        at=tuple(entry.get("at", ())),
        capability=entry.get("capability", ""),
        lossless=entry.get("lossless", False),
        methods=tuple(entry.get("for", ())),
        path=path,
    )
