"""Content of one package: a core revision, or the additions of one extension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword

from mcp_bindgen.ir.model import Extension, Method, Type, references
from mcp_bindgen.spec import BadInput

from . import calls
from .annotations import optional, spelled
from .imports import use
from .lowered import PythonProtocol


def engine_of(extension: Extension) -> str:
    """Return the option `python_engine` of an extension: the module with the base classes of its `Server` and `Client`.

    `module:ServerEngine` is a module with only this class. The result is empty if there is no engine.

    Raises:
        BadInput: The option does not name a module.
    """
    stated = dict(extension.options).get("python_engine")
    if stated is None:
        return ""
    module, colon, name = stated.partition(":")
    is_module = all(part.isascii() and part.isidentifier() and not iskeyword(part) for part in module.split("."))
    if not is_module or (colon and name not in ("ServerEngine", "ClientEngine")):
        raise BadInput(
            f"the option python_engine of {extension.id} is {stated!r}, which names no module",
            fix="give the name of a module, which :ServerEngine or :ClientEngine may follow",
        )
    return stated


@dataclass(frozen=True)
class PackageScope:
    """Part of a protocol that one package holds.

    Attributes:
        protocol: The whole protocol.
        origin: Id of the extension; empty for the core.
        core: Package with the bindings of the core, for an extension.
    """

    protocol: PythonProtocol
    origin: str = ""
    core: str = ""

    @property
    def extension(self) -> Extension:
        """The extension with the id `origin`."""
        return next(extension for extension in self.protocol.extensions if extension.id == self.origin)

    @property
    def title(self) -> str:
        """Title of the package: the revision, or the extension with its version."""
        core = f"MCP {self.protocol.revision}"
        return f"`{self.origin}` {self.extension.version} on {core}" if self.origin else core

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods of this package, in alphabetical order."""
        return tuple(method for method in self.protocol.methods if method.origin == self.origin)

    @property
    def definitions(self) -> tuple[str, ...]:
        """The names of the definitions of this package, in alphabetical order."""
        return tuple(name for name in self.protocol.definitions if self.holds(name))

    @cached_property
    def envelopes(self) -> frozenset[str]:
        """The definitions of this package that no params, results or capabilities contain: messages, errors, bases.

        Empty for a package without methods.
        """
        if not self.methods:
            return frozenset()
        types = [type for one in self.methods for type in (one.params, *one.answers) if type is not None]
        roots: list[str] = []
        if self.origin:
            types += [key.type for key in self.extension.meta_keys]
            roots += [own for _, own in (*self.extension.settings, *self.extension.extends)]
            roots += [own for _, answers in self.extension.alternatives for own in answers]
        roots += [name for type in types for name in references(type)]
        return frozenset(self.definitions) - self.protocol.reach(roots).keys()

    def holds(self, definition: str) -> bool:
        """Return whether a definition, by name, is one of this package."""
        return self.protocol.definitions[definition].origin == self.origin

    def stubs(self) -> Iterator[Method]:
        """Return the methods of this package in the order of their stubs: requests first."""
        return (method for method in calls.methods_in_order(self.protocol) if method.origin == self.origin)

    def annotation(self, type: Type | None, *, is_optional: bool = False) -> str:
        """Return `type` as an annotation for modules of the package; absence may be `None` beside other values."""
        text = "None" if type is None else spelled(type, self.name)
        return optional(text) if is_optional else text

    def name(self, definition: str) -> str:
        """Return the expression for a definition, e.g. `types.Tool`."""
        module = use(".", "types") if self.holds(definition) else use(self.core, "types", "core")
        return f"{module}.{definition}"
