"""Emit `server.py`: the stubs that a server overrides, and the calls that its handlers may make."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol

from .environment import render
from .stubs import calls, handlers, questions


def emit(protocol: Protocol, header: str) -> str:
    """Return the text of `server.py`."""
    return render(
        "server.py.jinja",
        header=header,
        protocol=protocol,
        calls=list(calls(protocol, "server")),
        questions=list(questions(protocol)),
        handlers=list(handlers(protocol, "server")),
    )
