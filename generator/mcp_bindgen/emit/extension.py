"""Prepare the facts of an extension for the templates of `extension.py` and `meta.py`."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.protocol import naming
from mcp_bindgen.protocol.model import MetaKey

from .part import Part


def values(part: Part) -> dict[str, object]:
    """Return what the templates show."""
    return {
        "extension": part.extension,
        "meta_keys": dict(_constants(part.extension.meta_keys)),
        "about": _about,
        "annotation": part.annotation,
        "defined": part.name,
    }


def _constants(keys: tuple[MetaKey, ...]) -> Iterator[tuple[str, MetaKey]]:
    """Name the keys of `_meta`; one with several types has a constant for each, after what has it."""
    for key in keys:
        is_one = [other.name for other in keys].count(key.name) == 1
        yield naming.constant(key.name if is_one else f"{key.on[0]}_{key.name}"), key


def _about(key: MetaKey) -> str:
    """Say where a key of `_meta` may stand."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `_meta`" + (f" of {places}." if places else ".")
