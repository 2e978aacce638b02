"""Names that generated packages of extensions import: facts, negotiation, additions to classes; a look-up of packages.

MCP 2026-07-28, "Extensions Overview". Imports `runtime`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from mcp_bindgen.runtime.model.base import fields_of, optional, wire_name
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_bindgen.runtime.protocol.extension import added_to, with_answers
from mcp_bindgen.runtime.protocol.methods import OTHER_ROLE, Method, RequestMethod, Role, result_type
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route


def extension_of(package: ModuleType, name: str) -> ModuleType | None:
    """Return the bindings of an extension of a revision by the name of their module; `None` if there are none."""
    whole = f"{package.__name__}.extensions.{name}"
    try:
        return import_module(whole)
    except ModuleNotFoundError as error:
        if error.name is None or not whole.startswith(error.name):
            raise  # the module exists, and one of its imports does not
        return None


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
    revision: Revision
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

    @property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, of the methods that it adds."""
        return self._methods

    @cached_property
    def _methods(self) -> Mapping[str, Method]:
        found: Mapping[str, Method] = import_module(f"{self.package}.methods").METHODS
        return found

    def is_in(self, capabilities: Mapping[str, Any]) -> bool:
        """Return whether a side declares it, by all that the side declares in wire form."""
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

    def negotiated(self, dispatcher: Dispatcher, declared: Mapping[Role, Mapping[str, Any]]) -> Any:
        """Return the settings that the peer declares, typed where their type is stated.

        Args:
            dispatcher: Dispatcher of this side in the revision of the connection.
            declared: Side -> all that it declares, in wire form.

        Returns:
            The settings; `None` if a side does not declare the extension, or it extends another revision.

        Raises:
            ProtocolError: -32602, they are not valid.
        """
        theirs = OTHER_ROLE[dispatcher.role]
        if dispatcher.revision is not self.revision or not self.is_in(declared[dispatcher.role]):
            return None
        extensions = declared[theirs].get("extensions")
        settings = extensions.get(self.id) if is_object(extensions) else None
        return settings if settings in (None, False) or theirs not in self.settings else self._typed(theirs, settings)

    def declared(self, role: Role, settings: object, handled: Collection[str] = ()) -> Any:
        """Return the settings of one of our sides in wire form.

        Args:
            role: The side.
            settings: Its settings, typed or in wire form.
            handled: Methods that it handles; the settings that these methods need are set to true.

        Raises:
            ProtocolError: They are not valid.
        """
        implied = {one.setting: True for name in handled if (one := self.methods.get(name)) and one.setting}
        wire = settings.model_dump() if isinstance(settings, BaseModel) else settings
        wire = {**implied, **wire} if is_object(wire) else wire
        typed = self._typed(role, wire) if role in self.settings else wire
        return typed.model_dump() if isinstance(typed, BaseModel) else typed

    @cached_property
    def _settings(self) -> dict[Role, TypeAdapter[Any]]:
        return {role: TypeAdapter(getattr(self.types, name)) for role, name in self.settings.items()}

    def _typed(self, role: Role, settings: object) -> Any:
        try:
            return self._settings[role].validate_python(settings)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            problem = f"the settings of {self.id} are not valid: {where}: {error.errors()[0]['msg']}"
            raise ProtocolError(INVALID_PARAMS, problem) from None

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

    def joined(self, kind: type, core: Mapping[str, Method], routes: Iterable[Route]) -> list[Route]:
        """Return the routes of a class: core routes with the additions of extensions, and the extensions' own routes.

        Args:
            kind: The class, which may have several extensions.
            core: Method name -> descriptor, of all methods of core.
            routes: The routes of its side in core.

        Raises:
            TypeError: A method, a handler or a member is taken twice, or an extension is of another core.
        """
        added = [one for one in added_to(kind) if isinstance(one, ExtensionRoutes)]
        _check_taken(kind, core, routes, added)
        extensions = [one.extension for one in added]
        kinds = _extended_types(extensions)
        found: list[Route] = []
        for route in routes:
            method = _extended(route.method, kinds)
            if isinstance(method, RequestMethod):
                method = with_answers(method, extensions)
            found.append(route if method is route.method else Route(method, route.handler))
        return [*found, *(route for one in added for route in one.routes)]


def _check_taken(
    kind: type, core: Mapping[str, Method], routes: Iterable[Route], added: Iterable[ExtensionRoutes]
) -> None:
    taken: dict[str, object] = {}

    def take(what: str, owner: object) -> None:
        known = taken.setdefault(what, owner)
        if known is not owner:
            raise TypeError(f"{kind.__name__}: {what} is taken by {known} and by {owner}")

    base = getattr(kind, "dispatcher").revision  # noqa: B009 - no attribute of classes in general
    owner = f"MCP {base.name}"
    for name, method in core.items():
        take(f"the method {name!r}", owner)
        for one in method.answers:
            take(f"the resultType {result_type(one)!r} of {name!r}", owner)
    for route in routes:
        take(f"the handler {route.handler!r}", owner)
    for addition in added:
        extension = addition.extension
        if extension.revision is not base:
            raise TypeError(f"{kind.__name__}: {extension} extends MCP {extension.revision.name}, not {owner}")
        for name in extension.methods:
            take(f"the method {name!r}", extension)
        for route in addition.routes:
            take(f"the handler {route.handler!r}", extension)
        for name in extension.alternatives:
            for answer in extension.answering(name):
                take(f"the resultType {result_type(answer)!r} of {name!r}", extension)
        for definition in extension.extends:
            for wire in extension.members(definition).values():
                take(f"{definition}.{wire}", extension)


def _extended_types(extensions: Iterable[Extension]) -> dict[Any, type[BaseModel]]:
    """Return definitions of core -> the same with the members that extensions add, so that one pass reads them."""
    own: dict[Any, list[Any]] = {}
    for one in extensions:
        for definition, name in one.extends.items():
            own.setdefault(getattr(one.core_types, definition), []).append(getattr(one.types, name))
    return {
        base: create_model(base.__name__, __base__=(base, *more), __module__=base.__module__)
        for base, more in own.items()
    }


def _extended(method: Method, kinds: Mapping[Any, type[BaseModel]]) -> Method:
    """Return a method with params of such types; the same if it has none."""
    fields = fields_of(method.params if kinds else None)
    made: dict[str, Any] = {}
    for name, one in fields.items():
        for base, more in kinds.items():
            if one.annotation is base or one.annotation == base | None:
                found: Any = copy(one)
                found.annotation = more if one.annotation is base else more | None
                made[name] = (found.annotation, found)
    if not made:
        return method
    base = method.params
    return replace(method, params=create_model(base.__name__, __base__=base, __module__=base.__module__, **made))


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class MetaKey(Generic[T]):
    """A member of `_meta` with a type.

    Attributes:
        key: Its name.
        type: Type of its value.
    """

    key: str
    type: Any

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.type)

    def read(self, holder: BaseModel) -> T | None:
        """Return the member in the `_meta` of an object; `None` if it is absent.

        Raises:
            pydantic.ValidationError: It is not of the type.
        """
        meta = optional(holder, "meta")
        members = meta.model_dump() if isinstance(meta, BaseModel) else meta
        return self._adapter.validate_python(members[self.key]) if is_object(members) and self.key in members else None

    def put(self, holder: M, value: T) -> M:
        """Return an object like `holder`, with `value` as a member of its `_meta`.

        Raises:
            pydantic.ValidationError: `value` is not of the type.
        """
        written = holder.model_dump()
        member = self._adapter.dump_python(self._adapter.validate_python(value))
        return holder.model_validate({**written, "_meta": {**(written.get("_meta") or {}), self.key: member}})
