"""The modules of a package: of a revision, or of an extension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from inspect import getsource
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.ir.model import MetaKey, Method, Need, Places, Ref, Type, Union, references
from mcp_bindgen.runtime.abi import GENERATION
from mcp_bindgen.runtime.model import base, introspection, scalars
from mcp_bindgen.spec import BadInput

from ..emitter import Options
from . import naming, stubs, types
from .calls import classes, walk
from .environment import TEMPLATES, noticed, render, style_files
from .installation import NAMESPACE
from .lowered import PythonProtocol
from .lowering import lower
from .package_scope import PackageScope, engine_of
from .settings import PythonSettings
from .stubs import constant

_JSON_RPC = range(-32768, -32599)  # codes that JSON-RPC itself defines (section 5.1)

_QUIET = '# pyright: reportDeprecated=false\n# mypy: disable-error-code="deprecated"'
"""Comments that let modules use what they deprecate themselves; type checkers still report uses elsewhere."""

_QUIET_FILES = frozenset({"client.py", "methods.py", "server.py"})
"""The files that mention definitions, beside `types.py`."""


_PUBLIC = {
    "EXTENSION": "extension",
    "REVISION": "revision",
    "Client": "client",
    "Context": "server",
    "Server": "server",
}
"""Name that a package exports -> its module; modules without such a name are exported themselves."""


def emit(model: Model, options: Options) -> dict[str, str]:
    """Return file name -> text of the package of a revision, or of the additions of an extension.

    Each template in the folder of such packages is one file.

    Raises:
        BadInput: A name of the schema cannot be used in Python, or a template of the user is wrong.
    """
    scope = PackageScope(lower(model.protocol), options.extension, options.core)
    folder = TEMPLATES / ("types_only" if options.parts else "extension" if scope.origin else "")
    names = {path.stem: path.relative_to(TEMPLATES).as_posix() for path in sorted(folder.glob("*.py.jinja"))}
    is_whole = scope.protocol.methods or scope.origin or options.parts or options.package.startswith(f"{NAMESPACE}.")
    if not is_whole:
        names = {name: names[name] for name in ("__init__.py", "types.py")}
    if not scope.envelopes:
        names.pop("envelopes.py", None)
    header, values = options.header(model), _values(scope, options, names)
    mentioned = {name for one in scope.definitions for name in (one, *references(scope.protocol.definitions[one].type))}
    quiet = f"\n{_QUIET}" if any(scope.protocol.definitions[name].deprecated for name in mentioned) else ""
    form, files = types.form_of(scope, options), dict[str, str]()
    for name, template in names.items():
        if name in ("types.py", "envelopes.py"):
            named = options.header(model, with_digest=name == "types.py") + quiet
            files[name] = types.emit(scope.protocol, named, form, options.templates, template)
        else:
            top = header + quiet if name in _QUIET_FILES else header
            files[name] = render(template, options.templates, header=top, **values)
    return {**_styled(files, options.templates), "py.typed": f"{header}\n"}


def _values(scope: PackageScope, options: Options, files: Iterable[str]) -> dict[str, object]:
    """Return the variables of all templates of a package with these files."""
    protocol = scope.protocol
    modules = sorted(name.removesuffix(".py") for name in files if name != "__init__.py")
    keys = [key.key for key in scope.extension.meta_keys] if scope.origin else protocol.facts.meta_keys
    public = {name: module for name, module in _PUBLIC.items() if module in modules}
    return {
        **method_values(scope),
        "protocol": protocol,
        "scope": scope,
        "title": scope.title,
        "core": options.core,
        "package": options.package,
        "command": options.command,
        "generation": GENERATION,
        "exports": {**public, **{name: name for name in modules if name not in public.values()}},
        "constants": protocol.constants,
        "errors": [protocol.constants[error.code] for error in protocol.errors if error.code not in _JSON_RPC],
        "utilities": [pair for pair in protocol.facts.utilities if pair[1] in {one.name for one in protocol.methods}],
        "meta_keys": sorted({protocol.meta_names[key]: key for key in keys}.items()),
        "calls": partial(stubs.calls, scope),
        "handlers": partial(stubs.handlers, scope),
        "questions": list(stubs.questions(scope)),
        "engine": partial(_engine, scope),
        "settings": options.settings_as(PythonSettings),
        "source": _sources() if options.parts else {},
        "meta_constants": partial(_meta_constants, scope),
        "about": _about,
    }


def _sources() -> dict[str, str]:
    """Return the text of the runtime's modules that types without the runtime bring with them."""
    return {one.__name__.rpartition(".")[2]: getsource(one) for one in (base, introspection, scalars)}


def _meta_constants(scope: PackageScope) -> Iterator[tuple[str, MetaKey]]:
    """Yield constant and key of `_meta`; a key with several types has a constant for each, named after its holder."""
    keys = scope.extension.meta_keys
    for key in keys:
        name, is_one = scope.protocol.meta_names[key.key], [other.key for other in keys].count(key.key) == 1
        yield naming.constant(name if is_one else f"{key.on[0]}_{name}"), key


def _about(key: MetaKey) -> str:
    """Return the description of a key of `_meta`, with the definitions that may have it."""
    places = " and ".join(f"`{definition}`" for definition in key.on)
    return f"The member `{key.key}` of `meta`" + (f" of {places}." if places else ".")


def _engine(scope: PackageScope, base: str) -> str:
    """Return the module of an extension's engine, if there is one with the class `base`: `module:Class` has only it."""
    module, _, only = engine_of(scope.extension).partition(":")
    return module if only in ("", base) else ""


def _styled(files: Mapping[str, str], templates: Path | None) -> dict[str, str]:
    """Return formatted modules; raise `BadInput` if a template of the user made no Python."""
    try:
        return style_files(files)
    except SyntaxError as error:
        if templates is None:
            raise
        message = f"{error.filename} is not Python: {error.msg}"
        raise BadInput(message, file=templates, fix="correct the template") from None


def method_values(scope: PackageScope) -> dict[str, object]:
    """Return the variables of the template."""
    return {
        "methods": scope.methods,
        "reopened": list(_reopened(scope)) if scope.origin else [],
        "annotation": scope.annotation,
        "constant": partial(constant, scope),
        "truncation": partial(_truncation, scope.protocol),
        "header_params": partial(_header_params, scope.protocol),
        "filter": partial(_filter, scope.protocol),
        "attribute": scope.protocol.attribute,
        "needed": _needed,
        "doc": _doc,
        "union": Union,
        "path": _path,
        "walk": partial(walk, scope.protocol),
    }


def _truncation(protocol: PythonProtocol, method: Method) -> dict[str, str | int]:
    """Return the arguments of the runtime's `Truncation`, with attributes for members."""
    stated = method.truncation
    if stated is None:
        return {}
    return {**_attributes(protocol, stated.places(protocol, method.result)), "max_items": stated.max_items}


def _header_params(protocol: PythonProtocol, method: Method) -> dict[str, str]:
    """Return the arguments of the runtime's `HeaderParams`, with attributes for members."""
    stated = method.header_params
    if stated is None:
        return {}
    listed = next(known.result for known in protocol.methods if known.name == stated.listed_by)
    places = stated.places(protocol, listed, method.params)
    return {"listed_by": stated.listed_by, **_attributes(protocol, places)}


def _attributes(protocol: PythonProtocol, places: Places) -> dict[str, str]:
    return {name: protocol.attribute(*place) for name, place in places.items()}


def _filter(protocol: PythonProtocol, method: Method) -> tuple[str, str]:
    """Return the attributes of a filter and of the compared member; the latter is empty if no member is compared."""
    stated = method.filter
    if stated is None:
        return "", ""
    compared = protocol.attribute(method.params, stated.compares) if stated.compares else ""
    return protocol.attribute(Ref(stated.definition), stated.member), compared


def _needed(need: Need) -> tuple[str | None, ...]:
    """Return the values that need a capability, `None` for an absent member."""
    return (*need.values, None) if need.absent else need.values


def _doc(method: Method) -> str:
    """Return the description of a method, the time when the runtime sends it, and the notice if it is deprecated."""
    sent = f"The runtime sends it {method.lifecycle}." if method.lifecycle else ""
    return noticed(" ".join(filter(None, (method.doc, sent))), method.deprecated)


def _path(capability: str) -> tuple[str, ...]:
    return tuple(capability.split("."))


def _reopened(scope: PackageScope) -> Iterator[tuple[Method, tuple[Type, ...]]]:
    """Return the requests of the core that the extension may answer otherwise, and how."""
    alternatives = dict(scope.extension.alternatives)
    for method in scope.protocol.methods:
        if method.name in alternatives:
            found = (name for answer in alternatives[method.name] for name in classes(scope.protocol, Ref(answer)))
            yield method, tuple(map(Ref, dict.fromkeys(found)))
