"""Revisions with bindings: those of this installation, and those of other sources, such as the user's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .logs import log

if TYPE_CHECKING:
    from .protocol.revision import KnownRevision

NAMESPACE = __name__.partition(".")[0]

SOURCES: set[Callable[[], Iterable[str]]] = set()
"""Functions that return the import names of further packages of bindings."""


def installed() -> list[ModuleType]:
    """Return the bindings of the revisions of this installation, the best last."""
    return [one.bindings for one in installed_revisions().values()]


@cache
def installed_revisions() -> Mapping[str, KnownRevision]:
    """Return name -> facts for the revisions of this installation, the best last."""
    from .protocol.revision import KnownRevision  # few commands need it

    try:
        rows: Mapping[str, tuple[str, bool, bool]] = import_module(f"{NAMESPACE}.bridges").REVISIONS
    except ModuleNotFoundError:
        return {}
    return {name: KnownRevision(name, f"{NAMESPACE}.{package}", *facts) for name, (package, *facts) in rows.items()}


def known() -> Mapping[str, KnownRevision]:
    """Return name -> facts for the revisions of this installation and of other sources, the best last."""
    from .protocol.revision import facts_of

    found = map(facts_of, imported((name for packages in SOURCES for name in packages()), "REVISION"))
    every = {**{one.name: one for one in found}, **installed_revisions()}
    return dict(sorted(every.items(), key=lambda item: item[1].rank))


def imported(names: Iterable[str], attribute: str) -> Iterator[Any]:
    """Import packages of bindings; yield an attribute of each.

    Bindings of other sources that cannot be imported are left out and logged: most programs do without them.
    """
    own = {one.package for one in installed_revisions().values()}
    for name in dict.fromkeys(names):
        try:
            found = getattr(import_module(name), attribute)
        except Exception as error:  # any error of the import
            if name in own:
                raise
            log.warning("bindings are left out: %s", error)
        else:
            yield found
