"""Options about the drift of servers: the callers for whom a change is judged, and the changes that fail a command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from mcp_bindgen.drift.callers import DEFAULT, BadCallers, Callers, callers
from mcp_bindgen.drift.changes import Change, Verdict
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.project import find, read

CallersName = Annotated[
    str | None,
    typer.Option(
        "--callers",
        metavar="NAME|FILE",
        help="Profile of the callers for whom changes are judged: sensible, strict or a TOML file of yours. "
        "By default the callers of the lock, the key `callers` of the configuration, or sensible.",
    ),
]
FailOn = Literal["never", "breaking", "unproven", "text", "any"]
"""Least severe change for which a command ends with exit code 1."""

Failure = Annotated[FailOn, typer.Option("--fail-on", help="End with exit code 1 if there is such a change.")]


def callers_of(name: str | None = None) -> Callers:
    """Return a profile of callers; raise `BadInput` if there is none of that name.

    Args:
        name: Its name or file; None for the profile of the configuration.
    """
    if name is None and (file := find()) is not None and (stated := read(file).callers):
        name = str(file.parent / stated) if stated.endswith(".toml") else stated
    with locating(None, BadCallers):
        return callers(name or DEFAULT)


def fails(fail_on: FailOn, changes: Iterable[Change]) -> bool:
    """Return whether a command must fail for one of some changes.

    `text` also fails for changed texts, which no verdict counts; `any` for every difference.
    """
    least = {"breaking": Verdict.BREAKING, "any": Verdict.NOTATION}.get(fail_on, Verdict.UNPROVEN)
    has_texts = fail_on in ("text", "any")
    return fail_on != "never" and any(one.verdict >= least or (has_texts and bool(one.texts)) for one in changes)
