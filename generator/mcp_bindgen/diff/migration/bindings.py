"""The old bindings as code sees them: packages, modules and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcp_bindgen.protocol.model import Ref

from .surface import Owner
from .uses import Notes, Place
from .values import Class, Data, Module, Package, Table, Thing, Value

MODULES = ("types", "errors", "methods", "client", "server", "dispatcher")
_OWNERS: Mapping[str, Owner] = {"Client": "Client", "Server": "Server", "Context": "Context"}
_EXPORTS: Mapping[str, tuple[str, ...]] = {"client": ("Client",), "server": ("Context", "Server")}


class Bindings:
    """The old bindings.

    Args:
        notes: Where uses are noted.
        package: The import name of the old bindings.
        classes: The classes that were made so far, shared by all files.
    """

    def __init__(self, notes: Notes, package: str, classes: dict[str, Class]) -> None:
        self.notes, self.package, self._classes = notes, package, classes
        self.surface = notes.rules.old

    def owner(self, name: Owner) -> Class:
        """A generated class that has stubs."""
        return self._classes.setdefault(f"<{name}>", Class(owner=name))

    def type(self, definition: str) -> Class:
        """A class or alias of `types.py`."""
        return self._classes.setdefault(definition, Class(definition=definition))

    def is_own(self, of: Class) -> bool:
        """Whether a class is the user's and not generated."""
        return self._classes.get(of.definition or f"<{of.owner}>") is not of

    def instance(self, of: Class) -> Value:
        """An object of a class, or a value of an alias."""
        if of.definition is not None and not self.is_own(of):
            return Data(Ref(of.definition))
        return Thing(of)

    def module(self, name: str) -> Package | Module | None:
        """The package or module of a dotted name, if it is one of the bindings or leads to them."""
        if name == self.package or self.package.startswith(f"{name}."):
            return Package(name)
        above, _, last = name.rpartition(".")
        return Module(last) if above == self.package and last in MODULES else None

    def names(self, value: Package | Module) -> Iterable[str]:
        """What `from ... import *` gives."""
        match value:
            case Package(self.package):
                return [*_OWNERS, "dispatcher", "errors", "methods", "types"]
            case Module("types"):
                return self.surface.protocol.definitions
            case Module("errors"):
                return self.surface.errors
            case Module("methods"):
                return [*self.surface.methods, "METHODS"]
            case Module(name):
                return _EXPORTS.get(name, ())
            case _:
                return ()

    def member(self, value: Package | Module, name: str, place: Place | None) -> Value | None:
        """What a name in a package or module is; where there is a place, its use there is noted."""
        match value:
            case Package(package) if name not in _OWNERS:
                return self.module(f"{package}.{name}")
            case Package(self.package):
                return self.owner(_OWNERS[name])
            case Module("types") if name in self.surface.protocol.definitions:
                if place is not None:
                    self.notes.type(place, name)
                return self.type(name)
            case Module("methods") if name == "METHODS":
                return Table()
            case Module("errors" | "methods" as module) if place is not None:
                (self.notes.error if module == "errors" else self.notes.method)(place, name)
            case Module(module) if name in _EXPORTS.get(module, ()):
                return self.owner(_OWNERS[name])
            case _:
                pass
        return None
