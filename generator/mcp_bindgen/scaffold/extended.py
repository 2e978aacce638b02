"""Find the extensions that a project shall speak among what it shall offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_bindgen.spec import BadInput, ExtensionPin, Extensions, Store


@dataclass(frozen=True)
class Wanted:
    """What a project shall offer.

    Attributes:
        features: The capabilities; `None` for the usual ones.
        extensions: The modules of the extensions.
        revisions: The revisions that it is written in: where none was named, the newest that has the extensions.
    """

    features: tuple[str, ...] | None
    extensions: tuple[str, ...]
    revisions: tuple[str, ...]


def wanted(store: Store, names: tuple[str, ...] | None, revisions: Sequence[str]) -> Wanted:
    """Tell extensions from capabilities: a name that is both is the extension's where a revision has it.

    Args:
        store: The `schema/` folder.
        names: What the project shall offer, if it was said.
        revisions: The revisions that were named.

    Raises:
        BadInput: No revision has all of the extensions.
    """
    known = Extensions(store)
    pins = {name: known.pin(name) for name in names or () if known.is_extension(name)}
    chosen = {name: pin for name, pin in pins.items() if not revisions or _has(known, pin, revisions)}
    if not chosen:
        return Wanted(names, (), tuple(revisions))
    cores = [name for name in store.pins if all(name in known.cores(pin) for pin in chosen.values())]
    if not cores:
        raise BadInput(f"no revision has all of {', '.join(chosen)}", fix="leave one of them out")
    left = tuple(name for name in names or () if name not in chosen)
    modules = tuple(dict.fromkeys(map(known.module, chosen.values())))
    return Wanted(left or None, modules, tuple(revisions) or (cores[-1],))


def offered(store: Store, revisions: Sequence[str]) -> list[str]:
    """Return the modules of the extensions that any of some revisions has."""
    known = Extensions(store)
    return sorted({known.module(pin) for pin in known.pins if _has(known, pin, revisions)})


def _has(known: Extensions, pin: ExtensionPin, revisions: Sequence[str]) -> bool:
    return not {known.store.pin(name).name for name in revisions}.isdisjoint(known.cores(pin))
