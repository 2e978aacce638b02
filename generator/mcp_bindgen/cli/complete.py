"""Complete revisions while they are typed on the command line."""

from __future__ import annotations


def revisions(incomplete: str) -> list[str]:
    """Return the revisions that begin with what is typed."""
    from mcp_bindgen.spec import Store  # takes time to load

    return [name for name in Store().pins if name.startswith(incomplete)]
