"""Effective schemas of revisions and extensions, the output of `spec/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from .copies import Copy
from .diagnostics import DiagnosticContext
from .keywords import Schema, walk
from .patches import Correction, Patch

Era = Literal["stateful", "stateless"]
Origin = Literal["ours", "file"]


@dataclass(frozen=True)
class ExtensionSchema:
    """Effective schema of an extension: its own definitions, with references to each other and to core.

    Attributes:
        id: Id of the extension, e.g. `com.example/jobs`.
        version: Version of the extension.
        module: Name of its package.
        definitions: Definition name -> JSON Schema 2020-12.
        digest: sha256 of this structure, for generated files.
        semantics: Facts in its own `semantics.toml`.
        stated_in: Path of this file, for errors.
        docs: Documentation in its own `docs.toml`; `None` for a file with its own prose.
        file: Source of the schema, for later errors.
        copies: Its copies of core definitions that differ from core.
        draft: True if it is not released.
        context: Reports broken rules in it.
    """

    id: str
    version: str
    module: str
    definitions: Mapping[str, Schema]
    digest: str
    semantics: Mapping[str, Any]
    stated_in: Path | None = None
    docs: Mapping[str, Any] | None = None
    file: Path | str | None = None
    copies: tuple[Copy, ...] = ()
    draft: bool = False
    context: DiagnosticContext = field(default_factory=DiagnosticContext)

    @property
    def label(self) -> str:
        """Name on the command line, e.g. `jobs@1.0`."""
        return f"{self.module}@{self.version}"


@dataclass(frozen=True, eq=False)
class EffectiveSchema:
    """Effective schema of a revision: upstream structure with corrections, in one dialect. It equals only itself.

    Attributes:
        revision: Name of the revision.
        definitions: Definition name -> JSON Schema 2020-12.
        digest: sha256 of the effective structure, for generated files.
        semantics: Facts in `semantics.toml`.
        docs: Documentation in `docs.toml`; `None` for a file with its own prose.
        file: Source of the schema, for later errors.
        applied: The applied patches.
        draft: True if it is not released.
        context: Reports broken rules, and lists the diagnostics so far.
        extensions: Its extensions, with their definitions among `definitions`.
    """

    revision: str
    definitions: Mapping[str, Schema]
    digest: str
    semantics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    docs: Mapping[str, Any] | None = None
    file: Path | str | None = None
    applied: tuple[Patch, ...] = ()
    draft: bool = False
    context: DiagnosticContext = field(default_factory=DiagnosticContext)
    extensions: tuple[ExtensionSchema, ...] = ()

    @cached_property
    def era(self) -> Era:
        """`stateful` or `stateless`."""
        return era(self.definitions)

    @property
    def origins(self) -> dict[str, str]:
        """Definition -> id of its extension, for definitions of extensions."""
        return {name: extension.id for extension in self.extensions for name in extension.definitions}

    def facts(self, origin: str) -> Mapping[str, Any]:
        """Return the facts of an extension, by its id, or of core, for an empty `origin`."""
        return next((one.semantics for one in self.extensions if one.id == origin), self.semantics)

    @property
    def all_facts(self) -> tuple[Mapping[str, Any], ...]:
        """The facts of core and of each extension."""
        return self.semantics, *(extension.semantics for extension in self.extensions)

    def descriptions(self, origin: str) -> Mapping[str, Any] | None:
        """Return the documentation of an extension or of core; `None` for a file with its own prose."""
        return next((one.docs for one in self.extensions if one.id == origin), self.docs)

    @property
    def origin(self) -> Origin:
        """Source of its documentation: `docs.toml`, or the file itself."""
        return "file" if self.docs is None else "ours"

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """Corrections in an external file; empty for our own revisions."""
        applied = self.applied if self.origin == "file" else ()
        return tuple(Correction(str(self.file), patch.pointer, patch.reason) for patch in applied)


def era(definitions: Mapping[str, Schema]) -> Era:
    """Return `stateful` if the schema has the `initialize` handshake, else `stateless`."""
    for definition in definitions.values():
        for node in walk(definition):
            if node.get("const") == "initialize":
                return "stateful"
    return "stateless"
