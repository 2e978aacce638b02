"""Emit `__init__.py`: the names of the package, imported on first use."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol

from .environment import render


def emit(protocol: Protocol, header: str, package: str) -> str:
    """Return the text of `__init__.py`."""
    return render("__init__.py.jinja", header=header, protocol=protocol, package=package)
