"""Emit `errors.py`: the error codes."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol, naming

from .environment import render


def emit(protocol: Protocol, header: str) -> str:
    """Return the text of `errors.py`."""
    return render("errors.py.jinja", header=header, protocol=protocol, constant=naming.constant)
