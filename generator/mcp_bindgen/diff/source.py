"""Load the revisions, schema files and extensions that a command line compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from mcp_bindgen.conversion.rules import read_rules
from mcp_bindgen.conversion.source import protocol_of
from mcp_bindgen.conversion.steps import rule_file
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.sources import Readable, is_source, read

from .extensions import versioned

_CHAIN = ".."


def load(names: Sequence[str], store: Store, semantics: Mapping[str, Any]) -> list[tuple[Protocol, Protocol]]:
    """Return the pairs of revisions to compare, oldest first.

    Args:
        names: Two revisions, versions of an extension, sources of schema files or printed models, or one chain such as
            `2024-11-05..2026-07-28`, which gives a pair for each step. A schema file or model may end a chain.
        store: The `schema/` folder.
        semantics: The facts about schema files.

    Raises:
        BadInput: The number of names is wrong, or a name is neither a revision nor a source.
    """
    if len(names) == 1 and _CHAIN in names[0]:
        first, _, last = names[0].partition(_CHAIN)
        if first in store.pins and is_source(last, store.pins):
            return list(pairwise(timeline(store, [last], semantics, first)))
        if not is_source(names[0], store.pins):
            return list(pairwise(build(store.effective(revision)) for revision in _chain(first, last, store)))
    if len(names) != 2:
        raise BadInput(
            "two revisions are compared", fix="name an old and a new one, or a chain such as 2024-11-05..2026-07-28"
        )
    if any(store.is_extension(name) for name in names):
        return [_extensions(names[0], names[1], store)]
    old, new = (protocol_of(name, store, semantics) for name in names)
    return [(old, new)]


def gates(store: Store) -> dict[tuple[str, ...], str]:
    """Return path of a value -> capability that a rule of any step names for it, of the installation or the user."""
    steps = read_rules(*dict.fromkeys(rule_file(store, users=users) for users in (False, True))).values()
    return {path: rule.capability for rules in steps for path, rule in rules.items() if rule.capability}


def timeline(
    store: Store, files: Iterable[Readable], semantics: Mapping[str, Any], first: str | None = None
) -> list[Protocol]:
    """Return our revisions from `first` on, oldest first, then those of schema files and printed models.

    Args:
        store: The `schema/` folder.
        files: The sources of the schema files and models.
        semantics: The facts about schema files.
        first: The first revision; None for the oldest.

    Raises:
        BadInput: A file is not a usable schema or model.
    """
    known = list(store.pins)
    ours = [build(store.effective(revision)) for revision in known[known.index(first) if first else 0 :]]
    return [*ours, *(protocol_of(read(file), store, semantics) for file in files)]


def _extensions(old: str, new: str, store: Store) -> tuple[Protocol, Protocol]:
    """Return two versions of an extension, each on the same core; one of them may be a schema file.

    The models are named after the versions. A file is read with the facts of the other version.
    """
    pin = store.extension(old if store.is_extension(old) else new)
    core = store.effective(store.core(pin))

    def read(name: str) -> Protocol:
        if store.is_extension(name):
            return versioned(core, store.extension_schema(name, core))
        if is_source(name, store.pins):
            return versioned(core, store.extension_schema(pin, core, name))
        raise BadInput(f"{name!r} is no extension, and {pin.id} is one", fix="compare two versions of an extension")

    return read(old), read(new)


def _chain(first: str, last: str, store: Store) -> list[str]:
    """Return the revisions from the first to the last one of a chain, in its direction."""
    for revision in (first, last):
        store.pin(revision)
    known = list(store.pins)
    low, high = sorted((known.index(first), known.index(last)))
    if low == high:
        raise BadInput(f"'{first}{_CHAIN}{last}' is a chain of one", fix="name two different revisions")
    steps = known[low : high + 1]
    return steps if steps[0] == first else steps[::-1]
