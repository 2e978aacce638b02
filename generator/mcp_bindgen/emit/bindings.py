"""From a protocol model to the files of its package."""

from __future__ import annotations

from collections.abc import Callable

from mcp_bindgen.protocol import Protocol

from . import client, dispatcher, errors, methods, package, revision, server, types
from .collector import collector_paused
from .header import header
from .imports import prune
from .scopes import check_scopes
from .style import style

EMITTERS: dict[str, Callable[[Protocol, str], str]] = {
    "types.py": types.emit,
    "methods.py": methods.emit,
    "errors.py": errors.emit,
    "revision.py": revision.emit,
    "server.py": server.emit,
    "client.py": client.emit,
    "dispatcher.py": dispatcher.emit,
}


def emit(protocol: Protocol, package_name: str, command: str) -> dict[str, str]:
    """The bindings of one revision.

    Args:
        protocol: The revision.
        package_name: The package's import name, for its docstring.
        command: The command that makes these files again, for their headers.

    Returns:
        File name -> text, formatted; the same input gives the same bytes on every machine.

    Raises:
        BadInput: A name of the schema cannot be used in Python, or two would be the same there.
    """
    top = header(f"from MCP {protocol.revision}, schema {protocol.digest[:16]}. Do not edit.", command)
    check_scopes(protocol)
    with collector_paused():
        files = {name: emitter(protocol, top) for name, emitter in EMITTERS.items()}
        files["__init__.py"] = package.emit(protocol, top, package_name, command)
        styled = {name: style(prune(text)) for name, text in sorted(files.items())}
    return {**styled, "py.typed": f"{top}\n"}
