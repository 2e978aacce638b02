"""Load what a command line compares: revisions of ours, schema files from anywhere, and chains of revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import BadInput, Extensions, Store, extend, is_extension, named
from mcp_bindgen.spec.sources import is_source

_CHAIN = ".."


def load(names: Sequence[str], store: Store, semantics: Mapping[str, Any]) -> list[tuple[Protocol, Protocol]]:
    """Return the pairs of revisions that are to be compared, oldest first.

    Args:
        names: Two revisions, versions of an extension or sources of schema files, or one chain such as
            `2024-11-05..2026-07-28`: each step in it is a pair.
        store: The `schema/` folder.
        semantics: The facts about schema files.

    Raises:
        BadInput: There are too many names or too few, or one of them is neither a revision nor a source.
    """
    if len(names) == 1 and _CHAIN in names[0] and not is_source(names[0], store.pins):
        protocols = [build(store.effective(revision)) for revision in _chain(names[0], store)]
        return list(pairwise(protocols))
    if len(names) != 2:
        raise BadInput(
            "two revisions are compared", fix="name an old and a new one, or a chain such as 2024-11-05..2026-07-28"
        )
    if any(is_extension(name, store) for name in names):
        return [_extensions(names[0], names[1], store)]
    old, new = (build(named(name, store, semantics)) for name in names)
    return [(old, new)]


def _extensions(old: str, new: str, store: Store) -> tuple[Protocol, Protocol]:
    """Return two versions of an extension, each on the same core; one of them may be a schema file.

    They are named after the versions. A file is read with the facts of the other version.
    """
    known = Extensions(store)
    pin = known.pin(old if is_extension(old, store) else new)
    core = store.effective(known.core(pin))

    def read(name: str) -> Protocol:
        if is_extension(name, store):
            extension = known.effective(name, core)
        elif is_source(name, store.pins):
            extension = known.held_against(pin, name, core)
        else:
            raise BadInput(f"{name!r} is no extension, and {pin.id} is one", fix="compare two versions of an extension")
        return replace(build(extend(core, extension)), revision=extension.label, digest=extension.digest)

    return read(old), read(new)


def _chain(name: str, store: Store) -> list[str]:
    """Return the revisions from the first to the last one of a chain, in its direction."""
    first, _, last = name.partition(_CHAIN)
    for revision in (first, last):
        store.pin(revision)
    known = list(store.pins)
    low, high = sorted((known.index(first), known.index(last)))
    if low == high:
        raise BadInput(f"{name!r} is a chain of one", fix="name two different revisions")
    steps = known[low : high + 1]
    return steps if steps[0] == first else steps[::-1]
