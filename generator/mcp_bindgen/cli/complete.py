"""Completion of revisions and extensions in shells."""

from __future__ import annotations


def revisions(incomplete: str) -> list[str]:
    """Return the revisions that begin with the typed text."""
    from mcp_bindgen.spec import Store  # takes time to load

    return [name for name in Store().pins if name.startswith(incomplete)]


def extensions(incomplete: str) -> list[str]:
    """Return the modules of extensions that begin with the typed text."""
    from mcp_bindgen.spec import Store  # takes time to load

    known = Store()
    return [name for name in dict.fromkeys(map(known.module, known.extension_pins)) if name.startswith(incomplete)]
