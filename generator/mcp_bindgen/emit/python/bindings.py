"""The modules of a package: of a revision, or of an extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mcp_bindgen.bridge.document import Model
from mcp_bindgen.protocol.model import MetaKey, Sender
from mcp_bindgen.runtime.abi import GENERATION
from mcp_bindgen.spec import BadInput

from ..emitter import Options
from . import methods, naming, stubs, types
from .environment import render
from .lowering import lower
from .part import Part, engine_of
from .style import style_files

Values = Callable[[Part], dict[str, object]]

_JSON_RPC = range(-32768, -32599)  # codes that JSON-RPC itself defines (section 5.1)


def _revision(part: Part) -> dict[str, object]:
    protocol = part.protocol
    known = {method.name for method in protocol.methods}
    return {
        "facts": protocol.facts,
        "era": "STATELESS" if protocol.era == "stateless" else "HANDSHAKE",
        "utilities": [(role, name) for role, name in protocol.facts.utilities if name in known],
        "meta_keys": sorted((protocol.meta_names[key], key) for key in protocol.facts.meta_keys),
        "errors": [protocol.constants[error.code] for error in protocol.errors if error.code not in _JSON_RPC],
    }


def _extension(part: Part) -> dict[str, object]:
    return {
        "extension": part.extension,
        "meta_keys": dict(_meta_constants(part)),
        "meta_names": {key.key: part.protocol.meta_names[key.key] for key in part.extension.meta_keys},
        "about": _about,
        "annotation": part.annotation,
        "defined": part.name,
    }


def _meta_constants(part: Part) -> Iterator[tuple[str, MetaKey]]:
    """Yield constant and key of `_meta`; a key with several types has a constant for each, named after its holder."""
    keys = part.extension.meta_keys
    for key in keys:
        name, is_one = part.protocol.meta_names[key.key], [other.key for other in keys].count(key.key) == 1
        yield naming.constant(name if is_one else f"{key.on[0]}_{name}"), key


def _about(key: MetaKey) -> str:
    """Return the description of a key of `_meta`, with the definitions that may have it."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `_meta`" + (f" of {places}." if places else ".")


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
    module, _, only = (engine_of(part.extension) if part.origin else "").partition(":")
    return module if only in ("", base) else ""


_ALL: dict[str, Values] = {
    "methods.py": methods.values,
    "server.py": _server,
    "client.py": _client,
    "dispatcher.py": _both,
}
_CORE: dict[str, Values] = {
    **_ALL,
    "errors.py": lambda part: {"constants": part.protocol.constants},
    "revision.py": _revision,
}
"""File -> function that returns the variables of its template, for a revision."""

_EXTENSION: dict[str, Values] = {**_ALL, "meta.py": _extension, "extension.py": _extension}
"""File -> function that returns the variables of its template, for an extension."""


_SHARED = {"methods.py"}
"""Files with one template for revisions and extensions."""


def emit(model: Model, options: Options) -> dict[str, str]:
    """Return file name -> text of the package of a revision, or of the additions of an extension.

    Raises:
        BadInput: A name of the schema cannot be used in Python, or a template of the user is wrong.
    """
    part = Part(lower(model.protocol), options.extension)
    top, core = options.header(model), options.core
    folder, table = ("extension/", _EXTENSION) if part.origin else ("", _CORE)
    about = f"{part.extension.doc}\n\n" if part.origin and part.extension.doc else ""
    shared = {"header": top, "protocol": part.protocol, "part": part, "title": part.title, "core": core}
    init = {"package": options.package, "generation": GENERATION, "command": options.command, "about": about}
    values = {"__init__.py": init, **{name: prepare(part) for name, prepare in table.items()}}
    files = {
        name: render(f"{'' if name in _SHARED else folder}{name}.jinja", options.templates, **shared, **prepared)
        for name, prepared in values.items()
    }
    files["types.py"] = types.emit(part.protocol, top, types.form_of(part, core), options.templates)
    return {**_styled(files, options.templates), "py.typed": f"{top}\n"}


def _styled(files: Mapping[str, str], templates: Path | None) -> dict[str, str]:
    """Return formatted modules without unused imports; raise `BadInput` if a template of the user made no Python."""
    try:
        return style_files(files)
    except SyntaxError as error:
        if templates is None:
            raise
        message = f"{error.filename} is not Python: {error.msg}"
        raise BadInput(message, file=templates, fix="correct the template") from None
