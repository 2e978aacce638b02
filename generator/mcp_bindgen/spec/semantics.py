"""Read `semantics.toml`: facts that schemas cannot state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import BadInput, locating
from .json import is_array, is_object, join
from .kinds import JSON, OBJECT, SETTINGS, TEXT, TEXT_MAP, TEXTS, VERSION, WHOLE, Kind, one_of
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
    "errors": ({"code": WHOLE, "doc": TEXT}, {"until": TEXT, "instead": TEXT}),
    "deprecations": ({"since": TEXT, "instead": TEXT, "definitions": TEXTS}, {}),
}
"""Table -> required keys and optional keys of each entry, with the kinds of their values."""

_VALUES = {
    "results": TEXT,
    "alternatives": TEXTS,
    "opt_in": TEXT,
    "capabilities": TEXT,
    "implied": TEXT,
    "arguments": TEXTS,
    "handshake": TEXT_MAP,
    "introductions": TEXTS,
    "lifecycle": TEXT,
    "shared": TEXT,
    "orders": TEXTS,
    "shortcuts": TEXT,
    "names": TEXT,
    "defaults": JSON,
    "transports": TEXT,
    "behaviour": TEXT,
    "utilities": TEXT,
    "batches": TEXT,
    "cache_invalidations": TEXTS,
    "trace_context": TEXT,
}
"""Table -> kind of its values."""

_OWN_VALUES = {"roles": one_of("client", "server", "both", "none"), "extends": TEXT, "meta": TEXT_MAP}
"""Tables of extensions only."""

_HEAD: tuple[_Keys, _Keys] = (
    {"id": TEXT, "core": TEXTS},
    {
        "module": TEXT,
        "version": VERSION,
        "doc": TEXT,
        "settings": SETTINGS,
        "options": TEXT_MAP,
        "only": TEXTS,
        "declared_by": one_of("both", "client", "server"),
    },
)
"""Keys of `[extension]`."""

_CORES = frozenset({"unions", "shared", "shortcuts", "transports", "behaviour", "utilities", "batches", "implied"}) | {
    "orders",
    "trace_context",
    "truncated",
    "handshake",
    "introductions",
}
"""Tables of core only."""

_WORDS = {"doc": TEXT, "fields": TEXT_MAP}
"""Keys of an entry in `docs.toml`."""

_LISTS = frozenset({"deprecations"})
_TABLES = (*_VALUES, *_ENTRIES)
_OWN_TABLES = (*(name for name in _TABLES if name not in _CORES), *_OWN_VALUES)


def read_semantics(path: Path) -> dict[str, Any]:
    """Return the facts in a file like `semantics.toml`; missing tables are empty.

    Raises:
        BadInput: The file is not TOML, or has an unknown table or key.
    """
    facts = read_toml(path)
    with locating(path):
        for name, table in facts.items():
            _check_table(name, table, _TABLES)
    return _filled(facts)


def read_extension_facts(path: Path) -> dict[str, Any]:
    """Return the facts in the `semantics.toml` of an extension, with a table `[extension]`.

    Raises:
        BadInput: The file is not TOML, has no such table, or has an unknown table or key.
    """
    facts = read_toml(path)
    with locating(path):
        head = facts.pop("extension", None)
        if head is None:
            raise BadInput("there is no table [extension]", fix=f"give it the keys {', '.join(_HEAD[0])}")
        _check_entry(head, *_HEAD, "/extension")
        for name, table in facts.items():
            _check_table(name, table, _OWN_TABLES)
    return {
        "extension": head,
        **_filled(facts),
        **{name: facts.get(name, {}) for name in _OWN_VALUES},
    }


def read_docs(path: Path) -> dict[str, Any]:
    """Return the documentation in a `docs.toml`; raise `BadInput` if it is not TOML, or has a value of another form."""
    docs = read_toml(path)
    with locating(path):
        for name, entry in docs.items():
            if name == "common":
                TEXT_MAP.check(entry, name, join("", name))
            else:
                _check_entry(entry, {}, {"handler": TEXT, "since": OBJECT, **_WORDS}, join("", name))
                for revision, words in entry.get("since", {}).items():
                    _check_entry(words, {}, _WORDS, join("", name, "since", revision))
    return docs


def _filled(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts.get(name, [] if name in _LISTS else {}) for name in _TABLES}


def merge_semantics(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged facts: entries of `theirs` take precedence, and lists are joined."""
    return {
        name: [*ours[name], *theirs[name]] if name in _LISTS else {**ours[name], **theirs[name]} for name in _TABLES
    }


def _check_table(name: str, table: Any, known: Iterable[str]) -> None:
    at = join("", name)
    if name not in known:
        raise BadInput(f"there is no table {name!r} of facts", pointer=at, fix=f"use one of {', '.join(known)}")
    if name in _LISTS and not is_array(table):
        raise BadInput("is not a list of tables", pointer=at, fix=f"write [[{name}]]")
    if name not in _LISTS and not is_object(table):
        raise BadInput("is not a table", pointer=at, fix=f"write [{name}]")
    for key, entry in enumerate(table) if is_array(table) else table.items():
        if name == "errors" and not re.fullmatch("[A-Za-z][A-Za-z0-9]*", str(key)):
            raise BadInput(f"{key!r} cannot be a name in code", pointer=join(at, key), fix="use letters and digits")
        if (kind := {**_VALUES, **_OWN_VALUES}.get(name)) is not None:
            kind.check(entry, str(key), join(at, key))
        else:
            _check_entry(entry, *_ENTRIES[name], join(at, key))


def _check_entry(entry: Any, required: _Keys, optional: _Keys, at: str) -> None:
    known = {**required, **optional}
    if not is_object(entry):
        raise BadInput("is not a table", pointer=at, fix=f"give it the keys {', '.join(known)}")
    for key, kind in required.items():
        if key not in entry:
            raise BadInput(f"{key!r} is missing", pointer=at, fix=f"give it {kind.description}")
    for key, value in entry.items():
        if key not in known:
            raise BadInput(f"{key!r} says nothing here", pointer=at, fix=f"use the keys {', '.join(known)}")
        known[key].check(value, key, join(at, key))
