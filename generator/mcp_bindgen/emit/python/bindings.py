"""The modules of a package: of a revision, or of an extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.ir.model import MetaKey, Sender
from mcp_bindgen.runtime.abi import GENERATION
from mcp_bindgen.spec import BadInput

from ..emitter import Options
from . import methods, naming, stubs, types
from .environment import render
from .installation import NAMESPACE
from .lowering import lower
from .package_scope import PackageScope, engine_of
from .style import style_files

Values = Callable[[PackageScope], dict[str, object]]

_JSON_RPC = range(-32768, -32599)  # codes that JSON-RPC itself defines (section 5.1)


def _revision(scope: PackageScope) -> dict[str, object]:
    protocol = scope.protocol
    known = {method.name for method in protocol.methods}
    return {
        "facts": protocol.facts,
        "era": "STATELESS" if protocol.era == "stateless" else "HANDSHAKE",
        "utilities": [(role, name) for role, name in protocol.facts.utilities if name in known],
        "meta_keys": sorted((protocol.meta_names[key], key) for key in protocol.facts.meta_keys),
        "errors": [protocol.constants[error.code] for error in protocol.errors if error.code not in _JSON_RPC],
    }


def _extension(scope: PackageScope) -> dict[str, object]:
    return {
        "extension": scope.extension,
        "meta_keys": dict(_meta_constants(scope)),
        "meta_names": {key.key: scope.protocol.meta_names[key.key] for key in scope.extension.meta_keys},
        "about": _about,
        "annotation": scope.annotation,
        "defined": scope.name,
    }


def _meta_constants(scope: PackageScope) -> Iterator[tuple[str, MetaKey]]:
    """Yield constant and key of `_meta`; a key with several types has a constant for each, named after its holder."""
    keys = scope.extension.meta_keys
    for key in keys:
        name, is_one = scope.protocol.meta_names[key.key], [other.key for other in keys].count(key.key) == 1
        yield naming.constant(name if is_one else f"{key.on[0]}_{name}"), key


def _about(key: MetaKey) -> str:
    """Return the description of a key of `_meta`, with the definitions that may have it."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `_meta`" + (f" of {places}." if places else ".")


def _both(scope: PackageScope) -> dict[str, object]:
    sides: list[tuple[str, Sender]] = [("SERVER", "server"), ("CLIENT", "client")]
    return {"sides": [(name, role, list(stubs.handlers(scope, role))) for name, role in sides]}


def _server(scope: PackageScope) -> dict[str, object]:
    return {
        "engine": _engine(scope, "ServerEngine"),
        "calls": list(stubs.calls(scope, "server")),
        "questions": [] if scope.origin else list(stubs.questions(scope)),
        "handlers": list(stubs.handlers(scope, "server")),
    }


def _client(scope: PackageScope) -> dict[str, object]:
    return {
        "engine": _engine(scope, "ClientEngine"),
        "calls": list(stubs.calls(scope, "client")),
        "handlers": list(stubs.handlers(scope, "client")),
    }


def _engine(scope: PackageScope, base: str) -> str:
    """Return the module of an extension's engine, if there is one with the class `base`: `module:Class` has only it."""
    module, _, only = (engine_of(scope.extension) if scope.origin else "").partition(":")
    return module if only in ("", base) else ""


_ALL: dict[str, Values] = {
    "methods.py": methods.values,
    "server.py": _server,
    "client.py": _client,
    "dispatcher.py": _both,
}
_CORE: dict[str, Values] = {
    **_ALL,
    "errors.py": lambda scope: {"constants": scope.protocol.constants},
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
    scope = PackageScope(lower(model.protocol), options.extension)
    top, named, core = options.header(model), options.header(model, with_digest=True), options.core
    has_types_only = not scope.protocol.methods and not options.package.startswith(f"{NAMESPACE}.")
    folder, table = ("extension/", _EXTENSION) if scope.origin else ("", {} if has_types_only else _CORE)
    about = f"{scope.extension.doc}\n\n" if scope.origin and scope.extension.doc else ""
    shared = {"header": top, "protocol": scope.protocol, "scope": scope, "title": scope.title, "core": core}
    facts = {"has_types_only": has_types_only, "about": about}
    init = {**facts, "package": options.package, "generation": GENERATION, "command": options.command}
    values = {"__init__.py": init, **{name: prepare(scope) for name, prepare in table.items()}}
    files = {
        name: render(f"{'' if name in _SHARED else folder}{name}.jinja", options.templates, **shared, **prepared)
        for name, prepared in values.items()
    }
    files["types.py"] = types.emit(scope.protocol, named, types.form_of(scope, core), options.templates)
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
