"""Emit `client.py`: the calls that a client makes, and the stubs for what servers ask of it."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol

from .environment import render
from .stubs import calls, handlers


def emit(protocol: Protocol, header: str) -> str:
    """Return the text of `client.py`."""
    return render(
        "client.py.jinja",
        header=header,
        protocol=protocol,
        calls=list(calls(protocol, "client")),
        handlers=list(handlers(protocol, "client")),
    )
