"""Emits `dispatcher.py`: one route for each message that a side takes."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol

from .environment import render
from .stubs import handlers


def emit(protocol: Protocol, header: str) -> str:
    """The text of `dispatcher.py`."""
    sides = [
        ("SERVER", "server", list(handlers(protocol, "server"))),
        ("CLIENT", "client", list(handlers(protocol, "client"))),
    ]
    return render("dispatcher.py.jinja", header=header, protocol=protocol, sides=sides)
