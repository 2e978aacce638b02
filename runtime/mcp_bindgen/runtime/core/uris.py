"""Compare the URIs of resources."""

from __future__ import annotations


def is_part(uri: str, of: str) -> bool:
    """Tell whether a resource is another one, or lies below it."""
    return uri == of or uri.startswith(of.rstrip("/") + "/")
