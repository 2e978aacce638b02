"""Say what is done to a JSON value, as data: the plan of a conversion, from which modules and words are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from .rules import Path, Rule


@dataclass(frozen=True)
class Test:
    """A question to a JSON value, by which the alternatives of a union are told apart.

    Attributes:
        kind: The JSON kind that it must have.
        member: The member that it must have.
        value: What that must be; `None` if anything will do.
        lacks: Members of which it may have some, but not all: with them it is something else.
    """

    kind: str = "object"
    member: str = ""
    value: Any = None
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fill:
    """A member that gets a value.

    Attributes:
        member: Its name.
        value: The value.
        replaces: Whether it takes the place of what is there, which means nothing to a source that does not know it.
    """

    member: str
    value: Any
    replaces: bool


@dataclass(frozen=True)
class Apply:
    """A rule, applied to a value.

    Attributes:
        rule: The rule.
        path: The place that it is for.
        needle: JSON text without which there is nothing to do, where the place tells.
    """

    rule: Rule
    path: Path
    needle: bytes = b""


@dataclass(frozen=True)
class Members:
    """Edit the members of an object.

    Attributes:
        edits: Member -> what is done to it where it is there.
        fills: Those that get a value.
        drops: Those that are left out.
        renames: Those that get another name, old and new.
        wants: Those without which the whole is refused.
        only: Those that the target takes, where it takes no others.
    """

    edits: tuple[tuple[str, Edit], ...] = ()
    fills: tuple[Fill, ...] = ()
    drops: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    wants: tuple[tuple[str, Apply], ...] = ()
    only: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Members]) -> Members:
        """Return one for several that are about different members."""
        names = [each.name for each in fields(cls)]
        found = list(parts)
        return cls(*(tuple(dict.fromkeys(one for part in found for one in getattr(part, name))) for name in names))


@dataclass(frozen=True)
class Each:
    """Edit each item of an array, or with `values` each value of an object."""

    edit: Edit
    values: bool = False


@dataclass(frozen=True)
class Cases:
    """Edit the alternatives of a union.

    Attributes:
        cases: To a value that passes a test, one after the other; `None` for nothing.
        rest: To a value that passes none.
    """

    cases: tuple[tuple[Test, Edit | None], ...]
    rest: Edit | None = None


@dataclass(frozen=True)
class Sequence:
    """Several edits of the same value, in order."""

    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Named:
    """The edit of a definition, by the names of the source's and the target's."""

    source: str
    target: str


Edit: TypeAlias = Apply | Members | Each | Cases | Sequence | Named


def sequence(*edits: Edit | None) -> Edit | None:
    """Join edits of the same value; `None` where there are none."""
    found = tuple(edit for edit in edits if edit is not None)
    return found[0] if len(found) == 1 else Sequence(found) if found else None


def parts(edit: Edit) -> Iterator[Edit]:
    """Return the edits directly inside of one."""
    match edit:
        case Members(edits, wants=wants):
            yield from (inner for _, inner in (*edits, *wants))
        case Each(inner):
            yield inner
        case Cases(cases, rest):
            yield from (inner for _, inner in cases if inner is not None)
            yield from () if rest is None else (rest,)
        case Sequence(edits):
            yield from edits
        case Apply() | Named():
            return


def reach(edit: Edit | None, named: Mapping[Named, Edit]) -> Iterator[Edit]:
    """Return an edit and all that it leads to, through definitions too, each of these once."""
    seen: set[Named] = set()
    pending = [] if edit is None else [edit]
    while pending:
        one = pending.pop()
        if isinstance(one, Named):
            if one in seen or one not in named:
                continue
            seen.add(one)
            pending.append(named[one])
        yield one
        pending += reversed([*parts(one)])
