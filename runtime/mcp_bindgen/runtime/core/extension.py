"""Describe an extension of the protocol as the runtime sees it, and join what several add to one class.

MCP 2026-07-28, "Extensions Overview": identifiers, negotiation and settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from .methods import Method
from .model import Model
from .routing import Route
from .transitions import Role


class ExtensionResult(Model):
    """The base of results by which extensions answer methods of core; `resultType` tells them apart."""


class CoreRevision(Protocol):
    """The part of a `Revision` that its extensions know."""

    @property
    def name(self) -> str:
        """The name of the revision."""
        ...

    @property
    def types(self) -> Any:  # a `cached_property` of a module, which checkers do not take for a property
        """The module of its types."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Extension:
    """The facts of one extension of one core revision; generated packages hold one, as `EXTENSION`.

    Facts that need types import the modules of the extension when they are asked for.

    Attributes:
        id: Its identifier, e.g. `com.example/jobs`.
        version: Its version.
        revision: The core revision that it extends.
        package: The import name of its bindings.
        settings: Side -> the name of the type of the settings that it declares beside the id.
        meta_keys: Python name -> key, of the members that it adds to `_meta`.
        alternatives: Method of core -> the names of the types that may answer it instead, each an `ExtensionResult`.
        extends: Definition of core -> the name of the type with the members that are added to it.
    """

    id: str
    version: str
    revision: CoreRevision
    package: str
    settings: Mapping[Role, str] = field(default_factory=dict[Role, str])
    meta_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    extends: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def types(self) -> ModuleType:
        """The module of its types."""
        return import_module(f"{self.package}.types")

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, of the methods that it adds."""
        found: Mapping[str, Method] = import_module(f"{self.package}.methods").METHODS
        return found

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"Extension({self.id!r}, {self.version!r})"


class ExtensionRoutes:
    """The routes that an extension adds to one side; the generated class of that side has them as `adds`.

    Args:
        extension: The extension.
        role: Which side.
        routes: One for each method of the extension that the other side sends.
    """

    def __init__(self, extension: Extension, role: Role, *routes: Route) -> None:
        self.extension = extension
        self.role: Role = role
        self.routes = routes
