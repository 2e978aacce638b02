"""Profiles of callers: which calls they send, and how they read results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from mcp_bindgen.app.loading import profile_names, read_profile


class BadCallers(ValueError):
    """No such profile of callers, or a file of another form; the message names the fix."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
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
    max_integer: Annotated[int, Field(ge=0)] = 2**53 - 1
    formats: bool = False
    unknown_members: Literal["ignored", "refused"] = "ignored"

    @classmethod
    def of(cls, name: str, stated: Mapping[str, Any], place: object) -> Callers:
        """Return the profile that TOML or JSON states; raise `BadCallers`, with its place, if an entry is wrong."""
        try:
            return cls(name, **stated)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise BadCallers(f"{place}: {first['loc'][0]}: {first['msg']}") from None

    def document(self) -> dict[str, Any]:
        """Return the profile as a JSON value, with its name."""
        return {**asdict(self), "date": self.date.isoformat()}


DEFAULT = "sensible"
"""Name of the default profile."""


def names() -> list[str]:
    """Return the names of the profiles that come with mcp-bindgen."""
    return profile_names("callers")


def callers(name: str = DEFAULT) -> Callers:
    """Return a profile by its name, or by the path of a TOML file with the members of `Callers` but `name`.

    Raises:
        BadCallers: There is none, or its file has another form.
    """
    file, found = read_profile("callers", name, BadCallers)
    if name not in names() and file.stem in names():
        raise BadCallers(f"{file}: {file.stem!r} comes with mcp-bindgen; rename the file")
    return Callers.of(file.stem, found, file)
