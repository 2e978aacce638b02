"""Load what a command line compares: revisions of ours, schema files, and chains of revisions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import BadInput, Store, external

_CHAIN = ".."
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def load(names: Sequence[str], store: Store, semantics: Mapping[str, Any]) -> list[tuple[Protocol, Protocol]]:
    """Return the pairs of revisions that are to be compared, oldest first.

    Args:
        names: Two revisions or schema files, or one chain such as `2024-11-05..2026-07-28`: each step in it is a pair.
        store: The `schema/` folder.
        semantics: The facts about schema files.

    Raises:
        BadInput: There are too many names or too few, or one of them is neither a revision nor a file.
    """
    if len(names) == 1 and _CHAIN in names[0] and not Path(names[0]).is_file():
        protocols = [build(store.effective(revision)) for revision in _chain(names[0], store)]
        return list(pairwise(protocols))
    if len(names) != 2:
        raise BadInput(
            "two revisions are compared", fix="name an old and a new one, or a chain such as 2024-11-05..2026-07-28"
        )
    old, new = (read_protocol(name, store, semantics) for name in names)
    return [(old, new)]


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


def read_protocol(name: str, store: Store, semantics: Mapping[str, Any]) -> Protocol:
    """Return a revision of ours, or a schema file; `semantics` are the facts about files."""
    path = Path(name)
    if name not in store.pins and (path.suffix == ".json" or path.exists() or "/" in name):
        return build(external(path, _revision(path), semantics, store.ledger))
    return build(store.effective(name))  # says which revisions there are


def _revision(path: Path) -> str:
    """Name the revision of a file: by the date of its folder (`2025-11-25/schema.json`), else by its own name."""
    folder = path.resolve().parent.name
    return folder if _DATE.fullmatch(folder) else path.stem
