"""Prepare the facts of an extension for the templates of `extension.py` and `meta.py`."""

from __future__ import annotations

from mcp_bindgen.protocol import naming
from mcp_bindgen.protocol.model import MetaKey

from .part import Part


def values(part: Part) -> dict[str, object]:
    """Return what the templates show."""
    return {
        "extension": part.extension,
        "about": _about,
        "annotation": part.annotation,
        "constant": naming.constant,
        "name": part.name,
    }


def _about(key: MetaKey) -> str:
    """Say where a key of `_meta` may stand."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `_meta`" + (f" of {places}." if places else ".")
