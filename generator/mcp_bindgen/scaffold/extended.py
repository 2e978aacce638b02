"""Find the extensions among the features that a project shall offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_bindgen.spec import BadInput, Pin, Store


@dataclass(frozen=True)
class Wanted:
    """The features and extensions of a project.

    Attributes:
        features: The capabilities; `None` for the default.
        extensions: The modules of the extensions.
        revisions: The revisions that it is written in; by default the newest that has the extensions.
    """

    features: tuple[str, ...] | None
    extensions: tuple[str, ...]
    revisions: tuple[str, ...]


def wanted(store: Store, names: tuple[str, ...] | None, revisions: Sequence[str]) -> Wanted:
    """Tell extensions from capabilities: a name that is both is the extension's where a revision has it.

    Args:
        store: The `schema/` folder.
        names: The features that were asked for, if any.
        revisions: The revisions that were named.

    Raises:
        BadInput: No revision has all of the extensions.
    """
    pins = {name: store.extension(name) for name in names or () if store.is_extension(name)}
    chosen = {name: pin for name, pin in pins.items() if not revisions or _has(store, pin, revisions)}
    if not chosen:
        return Wanted(names, (), tuple(revisions))
    cores = [name for name in store.pins if all(name in store.cores(pin) for pin in chosen.values())]
    if not cores:
        raise BadInput(f"no revision has all of {', '.join(chosen)}", fix="leave one of them out")
    left = tuple(name for name in names or () if name not in chosen)
    modules = tuple(dict.fromkeys(map(store.module, chosen.values())))
    return Wanted(left or None, modules, tuple(revisions) or (cores[-1],))


def offered(store: Store, revisions: Sequence[str]) -> list[str]:
    """Return the modules of the extensions that any of some revisions has."""
    return sorted({store.module(pin) for pin in store.extension_pins if _has(store, pin, revisions)})


def _has(store: Store, pin: Pin, revisions: Sequence[str]) -> bool:
    return not {store.pin(name).name for name in revisions}.isdisjoint(store.cores(pin))
