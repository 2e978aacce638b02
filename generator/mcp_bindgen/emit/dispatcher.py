"""Emit `dispatcher.py`: one route for each message that a side takes."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol

from .environment import render
from .stubs import handlers


def emit(protocol: Protocol, header: str) -> str:
    """Return the text of `dispatcher.py`."""
    sides = [
        ("SERVER", "Server", list(handlers(protocol, "server"))),
        ("CLIENT", "Client", list(handlers(protocol, "client"))),
    ]
    return render("dispatcher.py.jinja", header=header, protocol=protocol, sides=sides)
