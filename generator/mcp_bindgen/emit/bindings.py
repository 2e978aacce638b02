"""Emit the files of a package: those of a core revision, or of an extension of one."""

from __future__ import annotations

from collections.abc import Callable

from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.model import Sender
from mcp_bindgen.runtime.abi import GENERATION

from . import extension, methods, revision, stubs, types
from .collector import collector_paused
from .environment import render
from .header import header
from .imports import prune
from .part import Part
from .style import style

Values = Callable[[Part], dict[str, object]]


def _both(part: Part) -> dict[str, object]:
    sides: list[tuple[str, Sender]] = [("SERVER", "server"), ("CLIENT", "client")]
    return {"sides": [(name, role, list(stubs.handlers(part, role))) for name, role in sides]}


def _server(part: Part) -> dict[str, object]:
    return {
        "engine": _engine(part, "ServerEngine"),
        "calls": list(stubs.calls(part, "server")),
        "questions": [] if part.origin else list(stubs.questions(part)),
        "handlers": list(stubs.handlers(part, "server")),
    }


def _client(part: Part) -> dict[str, object]:
    return {
        "engine": _engine(part, "ClientEngine"),
        "calls": list(stubs.calls(part, "client")),
        "handlers": list(stubs.handlers(part, "client")),
    }


def _engine(part: Part, base: str) -> str:
    """Return the module of an extension's engine, if there is one with the class `base`: `module:Class` has only it."""
    module, _, only = part.extension.engine.partition(":") if part.origin else ("", "", "")
    return module if only in ("", base) else ""


_CORE: dict[str, Values] = {
    "methods.py": methods.values,
    "errors.py": lambda part: {"constant": naming.constant},
    "revision.py": lambda part: revision.values(part.protocol),
    "server.py": _server,
    "client.py": _client,
    "dispatcher.py": _both,
}
"""File -> what its template shows of a revision."""

_EXTENSION: dict[str, Values] = {
    "methods.py": methods.values,
    "meta.py": extension.values,
    "extension.py": extension.values,
    "server.py": _server,
    "client.py": _client,
    "dispatcher.py": _both,
}
"""File -> what its template shows of an extension."""


_SHARED = {"methods.py"}
"""The files whose template is the same for both."""


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
    return _package(Part(protocol), _CORE, top, package_name, command)


def emit_extension(protocol: Protocol, id: str, package_name: str, core: str, command: str) -> dict[str, str]:
    """Return the bindings of one extension: what it adds to the core that its protocol was read with.

    Args:
        protocol: The revision with the extension.
        id: The extension.
        package_name: The package's import name, for its docstring.
        core: The import name of the bindings of the revision.
        command: The command that makes these files again, for their headers.

    Returns:
        As `emit`.

    Raises:
        BadInput: A name of the schema cannot be used in Python.
    """
    part = Part(protocol, id)
    made = f"from an extension of MCP {protocol.revision}, schema {part.extension.digest[:16]}. Do not edit."
    top = header(made, command, f"{id} {part.extension.version}")
    return _package(part, _EXTENSION, top, package_name, command, core)


def _package(
    part: Part, values: dict[str, Values], top: str, package_name: str, command: str, core: str = ""
) -> dict[str, str]:
    folder = "extension/" if part.origin else ""
    shared = {"header": top, "protocol": part.protocol, "part": part, "title": part.title, "core": core}
    templates = {name: name if name in _SHARED else f"{folder}{name}" for name in [*values, "__init__.py"]}
    about = f"{part.extension.doc}\n\n" if part.origin and part.extension.doc else ""
    init = {"package": package_name, "generation": GENERATION, "command": command, "about": about}
    with collector_paused():
        files = {
            name: render(f"{templates[name]}.jinja", **shared, **prepared)
            for name, prepared in [*((name, of(part)) for name, of in values.items()), ("__init__.py", init)]
        }
        files["types.py"] = types.emit(part.protocol, top, types.form_of(part, core))
        styled = {name: style(prune(text)) for name, text in sorted(files.items())}
    return {**styled, "py.typed": f"{top}\n"}
