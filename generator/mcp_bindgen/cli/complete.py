"""Complete revisions and extensions while they are typed on the command line."""

from __future__ import annotations


def revisions(incomplete: str) -> list[str]:
    """Return the revisions that begin with what is typed."""
    from mcp_bindgen.spec import Store  # takes time to load

    return [name for name in Store().pins if name.startswith(incomplete)]


def extensions(incomplete: str) -> list[str]:
    """Return the extensions that begin with what is typed, by the names of their modules."""
    from mcp_bindgen.spec import Extensions, Store  # takes time to load

    known = Extensions(Store())
    return [name for name in dict.fromkeys(map(known.module, known.pins)) if name.startswith(incomplete)]
