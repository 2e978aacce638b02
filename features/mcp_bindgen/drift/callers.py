"""Profiles of callers: which calls they send, and how they read results."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from mcp_bindgen.app.loading import data_folder


class BadCallers(ValueError):
    """No such profile of callers, or a file of another form; the message names the fix."""


@dataclass(frozen=True)
class Callers:
    """Profile of callers.

    Attributes:
        name: Name of the profile: the stem of its file.
        title: The callers in a few words.
        date: Date of the facts.
        source: Source of the facts.
        members: Members that they send: those that the schema names, or any.
        max_integer: Largest integer that they send, also as the limit of negative ones; 0 for no limit.
        formats: True if formats of texts are conditions.
        unknown_members: Whether members of results that they do not know are ignored or refused.
    """

    name: str
    title: str
    date: date
    source: str
    members: Literal["named", "any"] = "named"
    max_integer: int = 2**53 - 1
    formats: bool = False
    unknown_members: Literal["ignored", "refused"] = "ignored"

    @classmethod
    def of(cls, name: str, stated: Mapping[str, Any], place: object) -> Callers:
        """Return the profile that TOML or JSON states; raise `BadCallers`, with its place, if an entry is wrong."""
        given = {one.name: one for one in fields(cls) if one.name != "name"}
        if unknown := stated.keys() - given.keys():
            raise BadCallers(f"{place}: unknown entry {min(unknown)}; use {', '.join(given)}")
        hints = get_type_hints(cls)
        for key, one in given.items():
            if (key in stated or one.default is MISSING) and not _fits(stated.get(key), hints[key]):
                raise BadCallers(f"{place}: {key} must be {_said(hints[key])}")
        return cls(name, **stated)

    def document(self) -> dict[str, Any]:
        """Return the profile as a JSON value, with its name."""
        return {**asdict(self), "date": self.date.isoformat()}


DEFAULT = "sensible"
"""Name of the default profile."""


def names() -> list[str]:
    """Return the names of the profiles that come with mcp-bindgen."""
    return sorted(file.stem for file in data_folder("callers").glob("*.toml"))


def callers(name: str = DEFAULT) -> Callers:
    """Return a profile by its name, or by the path of a TOML file with the members of `Callers` but `name`.

    Raises:
        BadCallers: There is none, or its file has another form.
    """
    known = names()
    if name not in known and not name.endswith(".toml"):
        raise BadCallers(f"unknown callers {name!r}; use a TOML file or one of {', '.join(known)}")
    file = data_folder("callers") / f"{name}.toml" if name in known else Path(name)
    if name not in known and file.stem in known:
        raise BadCallers(f"{file}: {file.stem!r} comes with mcp-bindgen; rename the file")
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadCallers(f"{file}: {error.strerror}; name an existing file") from None
    except ValueError as error:
        raise BadCallers(f"{file}: {error}") from None
    return Callers.of(file.stem, found, file)


def _fits(value: Any, hint: Any) -> bool:
    if choices := get_args(hint):
        return value in choices
    return type(value) is hint and not (hint is int and value < 0)


def _said(hint: Any) -> str:
    choices = get_args(hint)
    words: dict[Any, str] = {str: "a text", int: "a count"}
    return " or ".join(map(repr, choices)) if choices else words.get(hint, str(hint.__name__))
