"""Collect the additions of extensions beside definitions and methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from mcp_bindgen.spec.effective import ExtensionSchema

from ..model import OTHER_SIDE, Extension, MetaKey, Ref, Scalar, Type
from .build_state import BuildState

_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def collect_extensions(state: BuildState) -> BuildState:
    """Fill in the extensions, in the order in which they were laid over core."""
    return replace(state, extensions=tuple(_extension(one, state) for one in state.source.extensions))


def _extension(source: ExtensionSchema, state: BuildState) -> Extension:
    facts = source.semantics
    head: Mapping[str, Any] = facts["extension"]
    of_core = {name: method for name, method in state.methods.items() if not method.origin}
    return Extension(
        id=source.id,
        version=source.version,
        name=source.module,
        digest=source.digest,
        options=tuple(head.get("options", {}).items()),
        settings=tuple((side, name) for side in OTHER_SIDE if (name := head.get("settings", {}).get(side)) is not None),
        meta_keys=tuple(_meta_keys(facts["meta"])),
        alternatives=tuple((name, tuple(types)) for name, types in facts["alternatives"].items() if name in of_core),
        cache_invalidations=tuple((name, tuple(methods)) for name, methods in facts["cache_invalidations"].items()),
        extends=tuple(facts["extends"].items()),
        doc=head.get("doc", ""),
    )


def _meta_keys(table: Mapping[str, Mapping[str, str]]) -> Iterator[MetaKey]:
    """Yield the keys of `_meta`, one for each type of a key."""
    for key, holders in sorted(table.items()):
        for name in dict.fromkeys(holders.values()):
            places = tuple(holder for holder, type in holders.items() if type == name)
            yield MetaKey(key, type_named(name), places)


def type_named(name: str) -> Type:
    """Return the type that facts call `name`: one of JSON's scalars, else a definition."""
    return Scalar(cast(Any, name)) if name in _SCALARS else Ref(name)
