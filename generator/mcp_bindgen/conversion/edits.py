"""Edits of JSON values, as data: the plan of a conversion, from which emitters write code and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator

from mcp_bindgen.ir.json_form import Flag, List, Maybe, Pairs, Text, Texts
from mcp_bindgen.ir.model import Json, Type

from .rules import Path, Rule


@dataclass(frozen=True)
class Test:
    """A condition on a JSON value that tells the alternatives of a union apart.

    Attributes:
        kind: The JSON type that it must have.
        member: The member that it must have; empty if it needs none.
        value: The value of the member; absent for any value.
        lacks: Members of which some may be present, but not all.
    """

    kind: str = "object"
    member: Text = ""
    value: Maybe[Json] = None
    lacks: Texts = ()


@dataclass(frozen=True)
class Fill:
    """A member that gets a value.

    Attributes:
        member: The name of the member.
        value: The value.
        replaces: True if it replaces a present value, which has no meaning in the source.
    """

    member: str
    value: Any = field(hash=False)
    replaces: Flag = False


@dataclass(frozen=True)
class Apply:
    """A rule, applied to a value.

    Attributes:
        kind: The tag in JSON, as in all edits.
        rule: The rule.
        path: The path with the rule.
        required_text: Compact JSON text without which the rule has nothing to do; empty if there is no such text.
    """

    kind: Literal["apply"] = field(default="apply", kw_only=True, repr=False)
    rule: Rule
    path: Path
    required_text: Text = ""


@dataclass(frozen=True)
class Check:
    """An edit of the values that the target does not accept; other values stay as they are.

    Attributes:
        kind: The tag in JSON.
        types: Scalars and constants of the target, or an array of any items, one of which accepts the value.
        otherwise: The edit of a value that none of them accepts.
    """

    kind: Literal["check"] = field(default="check", kw_only=True, repr=False)
    types: tuple[Type, ...]
    otherwise: Edit


@dataclass(frozen=True)
class Try:
    """An edit of the values that another edit refuses."""

    kind: Literal["try"] = field(default="try", kw_only=True, repr=False)
    edit: Edit
    otherwise: Edit


@dataclass(frozen=True)
class Move:
    """A value that has another place in the target.

    Attributes:
        applied: The rule, with both places.
        edit: The edit of the value; absent if it stays as it is.
        keeps: True if the target knows the member from which the value is taken, so that the rest of it stays.
    """

    applied: Apply
    edit: Maybe[Edit] = None
    keeps: Flag = False


@dataclass(frozen=True)
class Members:
    """Edits of the members of an object.

    Attributes:
        kind: The tag in JSON.
        edits: Member -> edit of its value, if it is present.
        fills: The members that get a value.
        drops: The members that are removed.
        lenient: The members that are removed if their edit refuses them.
        moves: The values with another place in the target.
        wants: Member -> refusal of an object without it.
        only: The members that a closed target accepts; empty for an open one.
    """

    kind: Literal["members"] = field(default="members", kw_only=True, repr=False)
    edits: Pairs[Edit] = ()
    fills: List[Fill] = ()
    drops: Texts = ()
    lenient: Texts = ()
    moves: List[Move] = ()
    wants: Pairs[Apply] = ()
    only: Texts = ()

    @classmethod
    def joined(cls, parts: Iterable[Members]) -> Members:
        """Return one edit for several edits of different members."""
        names = [each.name for each in fields(cls) if not each.kw_only]
        found = list(parts)
        return cls(*(tuple(dict.fromkeys(one for part in found for one in getattr(part, name))) for name in names))


@dataclass(frozen=True)
class Each:
    """An edit of each item of an array, or with `values` of each value of an object."""

    kind: Literal["each"] = field(default="each", kw_only=True, repr=False)
    edit: Edit
    values: Flag = False


@dataclass(frozen=True)
class Case:
    """An edit of the values that pass a test; absent if these stay as they are."""

    test: Test
    edit: Maybe[Edit] = None


@dataclass(frozen=True)
class Cases:
    """Edits of the alternatives of a union.

    Attributes:
        kind: The tag in JSON.
        cases: The alternatives, tested in order.
        rest: The edit of a value that passes no test; absent if it stays as it is.
    """

    kind: Literal["cases"] = field(default="cases", kw_only=True, repr=False)
    cases: tuple[Case, ...]
    rest: Maybe[Edit] = None


@dataclass(frozen=True)
class Sequence:
    """Several edits of the same value, in order."""

    kind: Literal["sequence"] = field(default="sequence", kw_only=True, repr=False)
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Named:
    """The edit of a definition, by the names of the definition in the source and in the target."""

    kind: Literal["named"] = field(default="named", kw_only=True, repr=False)
    source: str
    target: str


Edit: TypeAlias = Annotated[Apply | Try | Check | Members | Each | Cases | Sequence | Named, Discriminator("kind")]


def sequence(*edits: Edit | None) -> Edit | None:
    """Return one edit for several edits of the same value, or None if there are none."""
    found = tuple(edit for edit in edits if edit is not None)
    return found[0] if len(found) == 1 else Sequence(found) if found else None


def parts(edit: Edit) -> Iterator[Edit]:
    """Yield the edits directly inside of an edit."""
    match edit:
        case Members(edits, moves=moves, wants=wants):
            yield from (inner for _, inner in (*edits, *wants))
            for move in moves:
                yield from (move.applied,) if move.edit is None else (move.applied, move.edit)
        case Try(first, inner):
            yield from (first, inner)
        case Each(inner) | Check(otherwise=inner):
            yield inner
        case Cases(cases, rest):
            yield from (case.edit for case in cases if case.edit is not None)
            yield from () if rest is None else (rest,)
        case Sequence(edits):
            yield from edits
        case Apply() | Named():
            return


def reach(edit: Edit | None, named: Mapping[Named, Edit]) -> Iterator[Edit]:
    """Yield an edit and all edits inside of it, including edits of definitions, each definition once."""
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
