"""Describe an extension of the protocol as the runtime sees it.

MCP 2026-07-28, "Extensions Overview": identifiers, negotiation and settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from ..model.base import Model, wire_name
from ..model.json_types import is_object
from .errors import INVALID_PARAMS, ProtocolError
from .methods import Method
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
    def package(self) -> str:
        """The import name of its bindings."""
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
    def core_types(self) -> ModuleType:
        """The module of the types of the core that it extends."""
        return import_module(f"{self.revision.package}.types")

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, of the methods that it adds."""
        found: Mapping[str, Method] = import_module(f"{self.package}.methods").METHODS
        return found

    def extends_core(self, revision: CoreRevision) -> bool:
        """Tell whether a revision is the one that it extends."""
        return self.revision is revision

    def is_in(self, capabilities: Mapping[str, Any]) -> bool:
        """Tell whether a side declares it, by all that the side declares in wire form."""
        declared = capabilities.get("extensions")
        return is_object(declared) and declared.get(self.id, False) not in (None, False)

    def answering(self, method: str) -> tuple[type[Any], ...]:
        """Return the types by which it may answer a method of core."""
        return tuple(getattr(self.types, name) for name in self.alternatives.get(method, ()))

    def members(self, definition: str) -> dict[str, str]:
        """Return the members that it adds to a definition of core: their names in Python, and on the wire."""
        if definition not in self.extends:
            return {}
        fields: Mapping[str, Any] = getattr(self.types, self.extends[definition]).model_fields
        return {name: one.alias or wire_name(name) for name, one in fields.items()}

    def settings_of(self, role: Role, capabilities: Mapping[str, Any]) -> Any:
        """Return the settings that a side declares, typed where their type is stated; `None` if it declares nothing.

        Args:
            role: The side.
            capabilities: All that it declares, in wire form.

        Raises:
            ProtocolError: -32602, they are not valid.
        """
        return self._typed(role, capabilities["extensions"][self.id]) if self.is_in(capabilities) else None

    def declared(self, role: Role, settings: Any, handled: Collection[str] = ()) -> Any:
        """Return the settings of one of our sides in wire form.

        Args:
            role: The side.
            settings: What it states, typed or in wire form.
            handled: The methods that it handles: those that need a setting of it set that to true.

        Raises:
            ProtocolError: They are not valid.
        """
        implied = {one.setting: True for name in handled if (one := self.methods.get(name)) and one.setting}
        wire = settings.model_dump() if isinstance(settings, BaseModel) else settings
        typed = self._typed(role, {**implied, **wire} if is_object(wire) else wire)
        return typed.model_dump() if isinstance(typed, BaseModel) else typed

    @cached_property
    def _settings(self) -> dict[Role, TypeAdapter[Any]]:
        return {role: TypeAdapter(getattr(self.types, name)) for role, name in self.settings.items()}

    def _typed(self, role: Role, settings: Any) -> Any:
        if role not in self.settings:
            return settings
        try:
            return self._settings[role].validate_python(settings)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            said = f"the settings of {self.id} are not valid: {where}: {error.errors()[0]['msg']}"
            raise ProtocolError(INVALID_PARAMS, said) from None

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
