"""Emit the files of a revision's package from its protocol model."""

from __future__ import annotations

from collections.abc import Callable

from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.runtime.abi import GENERATION

from . import methods, revision, stubs, types
from .collector import collector_paused
from .environment import render
from .header import header
from .imports import prune
from .style import style

_VALUES: dict[str, Callable[[Protocol], dict[str, object]]] = {
    "methods.py": methods.values,
    "errors.py": lambda protocol: {"constant": naming.constant},
    "revision.py": revision.values,
    "server.py": lambda protocol: {
        "calls": list(stubs.calls(protocol, "server")),
        "questions": list(stubs.questions(protocol)),
        "handlers": list(stubs.handlers(protocol, "server")),
    },
    "client.py": lambda protocol: {
        "calls": list(stubs.calls(protocol, "client")),
        "handlers": list(stubs.handlers(protocol, "client")),
    },
    "dispatcher.py": lambda protocol: {
        "sides": [
            ("SERVER", "server", list(stubs.handlers(protocol, "server"))),
            ("CLIENT", "client", list(stubs.handlers(protocol, "client"))),
        ]
    },
}
"""File -> what its template shows of a revision."""


def emit(protocol: Protocol, package_name: str, command: str) -> dict[str, str]:
    """Return the bindings of one revision.

    Args:
        protocol: The revision.
        package_name: The package's import name, for its docstring.
        command: The command that makes these files again, for their headers.

    Returns:
        File name -> text, formatted; the same input gives the same bytes on every machine.

    Raises:
        BadInput: A name of the schema cannot be used in Python.
    """
    top = header(f"from MCP {protocol.revision}, schema {protocol.digest[:16]}. Do not edit.", command)
    package = {"package": package_name, "generation": GENERATION, "command": command}
    with collector_paused():
        shared = {"header": top, "protocol": protocol}
        files = {name: render(f"{name}.jinja", **shared, **values(protocol)) for name, values in _VALUES.items()}
        files["types.py"] = types.emit(protocol, top)
        files["__init__.py"] = render("__init__.py.jinja", **shared, **package)
        styled = {name: style(prune(text)) for name, text in sorted(files.items())}
    return {**styled, "py.typed": f"{top}\n"}
