"""Client classes of a command: extensions that they speak, and capabilities that they declare beside their own."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from mcp_bindgen.emit.python import naming
from mcp_bindgen.extension_abi import ExtensionRoutes
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import suggestion


def client_class(revision: str, packages: Sequence[str] = ()) -> type[Any]:
    """Return the class of clients of a revision that also speak its extensions.

    Args:
        revision: The revision.
        packages: Import names of bindings beside the installed ones.

    Raises:
        BadInput: A package cannot be imported, or does not hold the bindings of an extension.
    """
    core: type[Any] = import_module(f"mcp_bindgen.{naming.package(revision)}.client").Client
    found = [package.Client for package in _packages(revision, packages)]
    return type(core.__name__, (*found, core), {}) if found else core


def routes(revision: str, packages: Sequence[str] = ()) -> dict[str, Route]:
    """Return method name -> route of the messages that extensions add to servers; raise as `client_class`."""
    tables: list[ExtensionRoutes] = [package.dispatcher.SERVER for package in _packages(revision, packages)]
    return {route.method.name: route for table in tables for route in table.routes}


def _packages(revision: str, own: Sequence[str]) -> list[ModuleType]:
    """Return the bindings of extensions of a revision that add requests, and the bindings of the user."""
    return [*_installed(revision), *(one for one in map(_imported, own) if one.EXTENSION.revision.name == revision)]


@cache
def _installed(revision: str) -> tuple[ModuleType, ...]:
    parent = f"mcp_bindgen.{naming.package(revision)}.extensions"
    try:
        folder = import_module(parent).__path__
    except ModuleNotFoundError:
        return ()
    found = [import_module(f"{parent}.{module.name}") for module in iter_modules(folder)]
    return tuple(one for one in found if one.dispatcher.SERVER.routes)


@cache
def _imported(name: str) -> ModuleType:
    """Return a package of the user; the current folder is searched first, as Python does."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = import_module(name)
        for part in ("EXTENSION", "Client", "dispatcher"):
            getattr(found, part)
    except (Exception, SystemExit) as error:  # an import may raise anything
        reason = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise BadInput(
            f"--package {name}: {' '.join(reason.split())}",
            fix="generate its bindings, and run the command in their folder",
        ) from None
    return found


def capability_names(text: str, kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return the client capabilities in a list.

    Args:
        text: The list, `NAME,NAME`.
        kinds: The client classes of all revisions.

    Raises:
        BadInput: No revision has a capability of that name.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    known = {name for kind in kinds for name in _capabilities(kind)} if names else set[str]()
    for name in names:
        if name not in known:
            fix = suggestion(name, sorted(known))
            raise BadInput(f"--declare {name}: clients have no such capability", fix=fix)
    return names


def declaring(kind: Any, names: Sequence[str]) -> Any:
    """Return a client class that also declares the named capabilities, as far as its revision has them."""
    declared: dict[str, Any] = {name: {} for name in names if name in _capabilities(kind)}
    if not declared:
        return kind

    def extra_capabilities(client: Any) -> Mapping[str, Any]:
        return declared

    return type(kind.__name__, (kind,), {"extra_capabilities": extra_capabilities})


def _capabilities(kind: Any) -> set[str]:
    fields: Mapping[str, Any] = kind.dispatcher.revision.types.ClientCapabilities.model_fields
    return {field.alias or wire_name(name) for name, field in fields.items()}
