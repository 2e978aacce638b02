"""Find emitters by name, among the entry points of all installed distributions."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import cast

from mcp_bindgen.spec.errors import BadInput, suggestion

from .emitter import Emit, Emitter

GROUP = "mcp_bindgen.emitters"
"""Group of the entry points."""

DEFAULT = "python"
"""Language of bindings if no other one is asked for."""


def languages() -> dict[str, list[EntryPoint]]:
    """Return the entry points of each language, in alphabetical order."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        found.setdefault(entry.name, []).append(entry)
    return found


def emitter(language: str = DEFAULT) -> Emitter:
    """Return the emitter of a language.

    Raises:
        BadInput: No distribution has it, several have it, or it cannot be loaded.
    """
    known = languages()
    if language not in known:
        raise BadInput(f"there is no emitter {language!r}", fix=suggestion(language, known))
    entry, *more = known[language]
    if more:
        names = ", ".join(sorted(_distribution(one) for one in (entry, *more)))
        raise BadInput(f"several distributions have an emitter {language!r}: {names}", fix="uninstall all but one")
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # importing a module may raise anything
        raise _unusable(entry, str(error)) from None
    if isinstance(found, Emitter):
        return found
    if not callable(found):
        raise _unusable(entry, f"{entry.value} is not callable")
    return Emitter(cast(Emit, found))


def _unusable(entry: EntryPoint, reason: str) -> BadInput:
    return BadInput(
        f"the emitter {entry.name!r} of {_distribution(entry)} cannot be loaded: {reason}",
        fix=f"install a working version of {_distribution(entry)}",
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value
