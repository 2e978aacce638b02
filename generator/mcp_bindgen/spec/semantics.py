"""Read `semantics.toml`: facts that schemas cannot state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput, locating
from .json import is_array, is_object, join
from .kinds import OBJECT, TEXT, TEXT_MAP, Kind, named, one_of
from .toml import read_toml

_Keys = Mapping[str, Kind]


@dataclass(frozen=True)
class _Form:
    """Form of a table of facts.

    Attributes:
        of: `core` or `extension` if it belongs to one of them only.
        values: Kind of its values; `None` if they are entries.
        required: Required keys of each entry, with the kinds of their values.
        optional: The same for optional keys.
        is_list: True for a list of entries without names.
    """

    of: str
    values: Kind | None
    required: _Keys
    optional: _Keys
    is_list: bool

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> _Form:
        """Return the form that a table of `semantics_form.toml` states."""

        def kind(stated: str | list[str]) -> Kind:
            return one_of(*stated) if is_array(stated) else named(stated)

        required, optional = (
            {key: kind(one) for key, one in table.get(name, {}).items()} for name in ("required", "optional")
        )
        values = kind(table["values"]) if "values" in table else None
        return cls(table.get("of", ""), values, required, optional, table.get("is_list", False))


_FORMS = {name: _Form.read(table) for name, table in read_toml(Path(__file__).with_name("semantics_form.toml")).items()}
_HEAD = _FORMS.pop("extension")
_TABLES = [name for name, form in _FORMS.items() if form.of != "extension"]
_OWN_TABLES = [name for name, form in _FORMS.items() if form.of != "core"]

_WORDS = {"doc": TEXT, "fields": TEXT_MAP}
"""Keys of an entry in `docs.toml`."""


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
            raise BadInput("there is no table [extension]", fix=f"give it the keys {', '.join(_HEAD.required)}")
        _check_entry(head, _HEAD.required, _HEAD.optional, "/extension")
        for name, table in facts.items():
            _check_table(name, table, _OWN_TABLES)
    return {
        "extension": head,
        **_filled(facts),
        **{name: facts.get(name, {}) for name in _OWN_TABLES if name not in _TABLES},
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
    return {name: facts.get(name, [] if _FORMS[name].is_list else {}) for name in _TABLES}


def merge_semantics(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged facts: entries of `theirs` take precedence, and lists are joined."""
    return {
        name: [*ours[name], *theirs[name]] if _FORMS[name].is_list else {**ours[name], **theirs[name]}
        for name in _TABLES
    }


def _check_table(name: str, table: Any, known: Iterable[str]) -> None:
    at = join("", name)
    if name not in known:
        raise BadInput(f"there is no table {name!r} of facts", pointer=at, fix=f"use one of {', '.join(known)}")
    form = _FORMS[name]
    if form.is_list and not is_array(table):
        raise BadInput("is not a list of tables", pointer=at, fix=f"write [[{name}]]")
    if not form.is_list and not is_object(table):
        raise BadInput("is not a table", pointer=at, fix=f"write [{name}]")
    for key, entry in enumerate(table) if is_array(table) else table.items():
        if name == "errors" and not re.fullmatch("[A-Za-z][A-Za-z0-9]*", str(key)):
            raise BadInput(f"{key!r} cannot be a name in code", pointer=join(at, key), fix="use letters and digits")
        if form.values is not None:
            form.values.check(entry, str(key), join(at, key))
        else:
            _check_entry(entry, form.required, form.optional, join(at, key))


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
