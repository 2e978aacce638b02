"""Prepare the facts of an extension for the templates of `extension.py` and `meta.py`."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.protocol.model import MetaKey

from . import naming
from .part import Part


def values(part: Part) -> dict[str, object]:
    """Return the variables of the templates."""
    return {
        "extension": part.extension,
        "meta_keys": dict(_constants(part)),
        "meta_names": {key.key: part.protocol.meta_names[key.key] for key in part.extension.meta_keys},
        "about": _about,
        "annotation": part.annotation,
        "defined": part.name,
    }


def _constants(part: Part) -> Iterator[tuple[str, MetaKey]]:
    """Yield constant and key of `_meta`; a key with several types has a constant for each, named after its holder."""
    keys = part.extension.meta_keys
    for key in keys:
        name, is_one = part.protocol.meta_names[key.key], [other.key for other in keys].count(key.key) == 1
        yield naming.constant(name if is_one else f"{key.on[0]}_{name}"), key


def _about(key: MetaKey) -> str:
    """Say where a key of `_meta` may stand."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `_meta`" + (f" of {places}." if places else ".")
