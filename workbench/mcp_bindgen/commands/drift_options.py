"""Options about the drift of servers: the callers for whom a change is judged, and the changes that fail a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import typer

from mcp_bindgen.drift.callers import DEFAULT, BadCallers, Callers, callers
from mcp_bindgen.drift.verdict import Verdict
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.project import find, read

CallersName = Annotated[
    str | None,
    typer.Option(
        "--callers",
        metavar="NAME|FILE",
        help="Profile of the callers for whom changes are judged: sensible, strict or a TOML file of yours. "
        "By default the key `callers` of the configuration, or sensible.",
    ),
]
FailOn = Literal["never", "breaking", "unproven", "text", "any"]
"""Least severe change for which a command ends with exit code 1."""

Failure = Annotated[
    FailOn,
    typer.Option(
        "--fail-on",
        help="End with exit code 1 for such a change or a worse one: breaking, unproven, text or any.",
    ),
]
_LEAST: Mapping[FailOn, int] = {
    "breaking": Verdict.BREAKING,
    "unproven": Verdict.UNPROVEN,
    "text": Verdict.UNPROVEN,
    "any": Verdict.NOTATION,
}
"""Value of `--fail-on` -> the least verdict that fails."""


def callers_of(name: str | None = None) -> Callers:
    """Return a profile of callers; raise `BadInput` if there is none of that name.

    Args:
        name: Its name or file; None for the profile of the configuration.
    """
    if name is None and (file := find()) is not None and (stated := read(file).callers):
        name = str(file.parent / stated) if stated.endswith(".toml") else stated
    try:
        return callers(name or DEFAULT)
    except BadCallers as error:
        raise BadInput(str(error)) from None


def fails(fail_on: FailOn, verdicts: Iterable[Verdict], *, has_texts: bool) -> bool:
    """Return whether a command must fail.

    Args:
        fail_on: Value of `--fail-on`.
        verdicts: Verdicts on the changes.
        has_texts: True if a text changed.
    """
    is_bad = fail_on != "never" and any(one >= _LEAST[fail_on] for one in verdicts)
    return is_bad or (has_texts and fail_on in ("text", "any"))
