"""The packages of the extra `mcp-bindgen[contract]`, which are imported when they are first used."""

from __future__ import annotations

from importlib.util import find_spec


class NotInstalled(ImportError):
    """A package of the extra `mcp-bindgen[contract]` is needed and missing."""


def require(package: str, purpose: str) -> None:
    """Check that a package is installed, without importing it; raise `NotInstalled` if it is not."""
    if find_spec(package) is None:
        raise NotInstalled(f"{purpose} needs {package}: pip install 'mcp-bindgen[contract]'")
