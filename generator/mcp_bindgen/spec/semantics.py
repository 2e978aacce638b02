"""Read `semantics.toml`: the facts that no schema can state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import BadInput, locating
from .json import is_array, is_object
from .kinds import SCALAR, TEXT, TEXTS, WHOLE, Kind, one_of
from .pointer import join
from .toml import read_toml

_Keys = dict[str, Kind]
_ENTRIES: dict[str, tuple[_Keys, _Keys]] = {
    "unions": (
        {"sender": one_of("client", "server"), "kind": one_of("request", "notification")},
        {"carrier": one_of("message", "embedded")},
    ),
    "needs": ({"capability": TEXT}, {"values": TEXTS, "checked_by": one_of("both", "sender")}),
    "truncated": ({**dict.fromkeys(("holder", "values", "total", "more"), TEXT), "most": WHOLE}, {}),
    "header_params": (dict.fromkeys(("listed_by", "items", "name", "schema", "arguments"), TEXT), {}),
    "filters": ({"member": TEXT}, {"compares": TEXT, "by": one_of("equal", "part")}),
    "errors": ({"code": WHOLE, "doc": TEXT}, {"until": TEXT}),
    "deprecations": ({"since": TEXT, "instead": TEXT, "definitions": TEXTS}, {}),
}
"""Table -> the keys that each entry must have, and those that it may have; each with what its value must be."""

_VALUES = {
    "results": TEXT,
    "alternatives": TEXTS,
    "asked_by": TEXT,
    "capabilities": TEXT,
    "implied": TEXT,
    "arguments": TEXTS,
    "lifecycle": TEXT,
    "shared": TEXT,
    "names": TEXT,
    "defaults": SCALAR,
    "transports": TEXT,
    "customs": TEXT,
    "utilities": TEXT,
    "batches": TEXT,
    "stale": TEXTS,
    "trace_context": TEXT,
}
"""Table -> what each value in it must be."""

_LISTS = frozenset({"deprecations"})
_TABLES = (*_VALUES, *_ENTRIES)


def read_semantics(path: Path) -> dict[str, Any]:
    """Return the facts in a file of the form of `semantics.toml`; tables that it leaves out are empty.

    Raises:
        BadInput: The file is not TOML, or says something that no pass would read.
    """
    facts = read_toml(path)
    with locating(path):
        for name, table in facts.items():
            _check_table(name, table)
    return {name: facts.get(name, [] if name in _LISTS else {}) for name in _TABLES}


def merge_semantics(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of both: tables are merged, in favour of `theirs`, and lists are joined."""
    return {
        name: [*ours[name], *theirs[name]] if name in _LISTS else {**ours[name], **theirs[name]} for name in _TABLES
    }


def _check_table(name: str, table: Any) -> None:
    at = join("", name)
    if name not in _TABLES:
        raise BadInput(f"there is no table {name!r} of facts", pointer=at, fix=f"use one of {', '.join(_TABLES)}")
    if name in _LISTS and not is_array(table):
        raise BadInput("is not a list of tables", pointer=at, fix=f"write [[{name}]]")
    if name not in _LISTS and not is_object(table):
        raise BadInput("is not a table", pointer=at, fix=f"write [{name}]")
    for key, entry in enumerate(table) if is_array(table) else table.items():
        if name == "errors" and not re.fullmatch("[A-Za-z][A-Za-z0-9]*", str(key)):
            raise BadInput(f"{key!r} cannot be a name in Python", pointer=join(at, key), fix="use letters and digits")
        if name in _VALUES:
            _VALUES[name].check(entry, str(key), join(at, key))
        else:
            _check_entry(entry, *_ENTRIES[name], join(at, key))


def _check_entry(entry: Any, required: _Keys, optional: _Keys, at: str) -> None:
    known = {**required, **optional}
    if not is_object(entry):
        raise BadInput("is not a table", pointer=at, fix=f"give it the keys {', '.join(known)}")
    for key, kind in required.items():
        if key not in entry:
            raise BadInput(f"{key!r} is missing", pointer=at, fix=f"give it {kind.words}")
    for key, value in entry.items():
        if key not in known:
            raise BadInput(f"{key!r} says nothing here", pointer=at, fix=f"use the keys {', '.join(known)}")
        known[key].check(value, key, join(at, key))
