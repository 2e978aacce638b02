"""Hold what a revision means, alone or with extensions: what `spec/` hands on to `protocol/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .copies import Copy
from .keywords import Schema, walk
from .patches import Correction, Patch
from .reading import Reading

Origin = Literal["ours", "file"]


@dataclass(frozen=True)
class ExtensionSchema:
    """The meaning of an extension: its own definitions, which refer to each other and to those of a core revision.

    Attributes:
        id: Its identifier, e.g. `com.example/jobs`.
        version: Its version.
        module: The name of its package in Python.
        definitions: Definition name -> JSON Schema 2020-12.
        digest: sha256 over that structure; generated files carry it.
        semantics: The facts of its own `semantics.toml`.
        stated_in: Where that is, for errors.
        docs: The words of its own `docs.toml`, or nothing for a file that brings its own prose.
        file: Where it was read from, for errors that are found later.
        copies: Its copies of core definitions that say something else.
        draft: Whether it is not released yet.
        reading: Decides about what breaks a rule in it.
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
    reading: Reading = field(default_factory=Reading)

    @property
    def label(self) -> str:
        """What commands call it: `jobs@1.0`."""
        return f"{self.module}@{self.version}"


@dataclass(frozen=True)
class EffectiveSchema:
    """The meaning of a revision: upstream structure with known mistakes corrected, in one dialect.

    Attributes:
        revision: Its name.
        definitions: Definition name -> JSON Schema 2020-12.
        digest: sha256 over the effective structure; generated files carry it.
        semantics: The facts of `semantics.toml`.
        docs: The words of `docs.toml`, or nothing for a file that brings its own prose.
        file: Where it was read from, for errors that are found later.
        applied: The patches that found what they expect.
        draft: Whether it is not released yet.
        reading: Decides about what breaks a rule, and knows what was decided so far.
        extensions: What it is read with; their definitions are among its own.
    """

    revision: str
    definitions: Mapping[str, Schema]
    digest: str
    semantics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    docs: Mapping[str, Any] | None = None
    file: Path | str | None = None
    applied: tuple[Patch, ...] = ()
    draft: bool = False
    reading: Reading = field(default_factory=Reading)
    extensions: tuple[ExtensionSchema, ...] = ()

    @property
    def origins(self) -> dict[str, str]:
        """Definition -> id of the extension that brings it, for those that are not core's."""
        return {name: extension.id for extension in self.extensions for name in extension.definitions}

    def facts(self, origin: str) -> Mapping[str, Any]:
        """Return the facts about what is of `origin`: the id of an extension, or empty for core."""
        return next((one.semantics for one in self.extensions if one.id == origin), self.semantics)

    @property
    def all_facts(self) -> tuple[Mapping[str, Any], ...]:
        """The facts of core, and those of each extension."""
        return self.semantics, *(extension.semantics for extension in self.extensions)

    def words(self, origin: str) -> Mapping[str, Any] | None:
        """Return the words for what is of `origin`; `None` where its file brings its own."""
        return next((one.docs for one in self.extensions if one.id == origin), self.docs)

    @property
    def origin(self) -> Origin:
        """Where its words come from: `docs.toml`, or the file itself."""
        return "file" if self.docs is None else "ours"

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """What was corrected in a file of others; our own revisions are known to need it."""
        applied = self.applied if self.origin == "file" else ()
        return tuple(Correction(str(self.file), patch.pointer, patch.reason) for patch in applied)


def era(definitions: Mapping[str, Schema]) -> str:
    """Return `stateful` when the schema knows the `initialize` handshake, else `stateless`."""
    for definition in definitions.values():
        for _, node in walk(definition):
            if node.get("const") == "initialize":
                return "stateful"
    return "stateless"
