"""Emitters, the plugins that write bindings in one language, and the packages that they write."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from mcp_bindgen.conversion.descriptions import page
from mcp_bindgen.conversion.differences import Plan
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.source import models
from mcp_bindgen.conversion.steps import rule_file
from mcp_bindgen.ir import Protocol, build, slice_protocol
from mcp_bindgen.ir.model import Definition
from mcp_bindgen.spec import BadInput, Diagnostic, EffectiveSchema, ExtensionSchema, Store
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.project import Table

from .formatter import formatted
from .header import header, is_generated

BRIDGES = "bridges"
"""Name of the package of conversions, beside the packages of revisions."""


class Settings(Table):
    """Settings of a package in the configuration; emitters with further settings declare a subclass.

    Attributes:
        names: Name of a definition in the schema -> its name in the language, before the language's own rules.
        license: Text in the header of each file, such as a licence.
        formatter: Command that formats a file, from stdin to stdout. `{file}` stands for the path of the file.
    """

    names: Mapping[str, str] = {}
    license: str = ""
    formatter: tuple[str, ...] = ()


_Settings = TypeVar("_Settings", bound=Settings)


@dataclass(frozen=True)
class Options:
    """Options of one package.

    Attributes:
        package: Name of the package, e.g. `acme.mcp`.
        command: Command that generates the same files again.
        extension: Id of the extension that the package is about; empty for the revision itself.
        core: Name of the package with the bindings of the revision; empty if the package needs none.
        templates: Folder with templates that replace templates of the emitter, or None.
        parts: Parts of the package to write, among `Emitter.parts`; empty means the whole package.
        joins_installed: True if the files join a package of the installation, which has its own initial module.
        revisions: Name, True if stateless, and True for a draft, of all revisions that conversions are between; the
            best last.
        settings: Settings from the configuration, of the class that the emitter declares.
    """

    package: str
    command: str
    extension: str = ""
    core: str = ""
    templates: Path | None = None
    parts: tuple[str, ...] = ()
    joins_installed: bool = False
    revisions: tuple[tuple[str, bool, bool], ...] = ()
    settings: Settings = field(default_factory=Settings)

    def settings_as(self, kind: type[_Settings]) -> _Settings:
        """Return the settings as the class of an emitter; its defaults without a configuration."""
        return self.settings if isinstance(self.settings, kind) else kind()

    def header(self, model: Model, comment: str = "#", *, with_digest: bool = False) -> str:
        """Return the header that the first line of each file must begin with.

        Args:
            model: Input of the emitter.
            comment: Start of a comment line in the language of the file.
            with_digest: True for the one file that names the digest of the schema: the others do not change with it.
        """
        protocol, source = model.protocol, ""
        made, digest = f"from MCP {protocol.revision}", protocol.digest
        if self.extension:
            extension = next(one for one in protocol.extensions if one.id == self.extension)
            made, digest = f"from an extension of MCP {protocol.revision}", extension.digest
            source = f"{extension.id} {extension.version}"
        schema = f", schema {digest[:16]}" if with_digest else ""
        first = f"{made}{schema}. Do not edit."
        return header(first, self.command, source, comment=comment, license=self.settings.license)


Emit = Callable[[Model, Options], Mapping[str, str]]
"""Function of an emitter: returns file name -> text. The same input gives the same text on every machine."""

_FILES = TypeAdapter(dict[str, str])


class Emitter:
    """An emitter: its function, and facts about its language.

    An entry point of the group `mcp_bindgen.emitters` names a function or an object of this class.

    Args:
        emit: The function.

    Attributes:
        templates: Names of the templates that `--templates` may replace.
        parts: Parts of a package that `--only` may ask for, beside capabilities.
        made_with: Distributions; the text depends on their versions.
        modules: Packages; the text depends on their code, beside the code of the emitter.
        record: Path in a package for a record of its inputs, so that unchanged packages are not generated again.
        settings: Class of the settings that a configuration may state.
        formats: Pattern of the names of files that a formatter takes.
    """

    templates: Collection[str] = ()
    parts: Collection[str] = ()
    made_with: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    record: str = ""
    settings: type[Settings] = Settings
    formats: str = "*"

    def __init__(self, emit: Emit) -> None:
        self.emit = emit

    @property
    def module(self) -> str:
        """The module of its function."""
        return self.emit.__module__

    def check_package(self, name: str) -> None:
        """Raise `BadInput` if the language has no package of this name."""
        if not all(part.replace("-", "_").isidentifier() for part in name.split(".")):
            raise BadInput(f"{name!r} is not the name of a package", fix="use letters, digits, - _ and dots")

    def check_options(self, options: Options) -> None:
        """Raise `BadInput` if options do not fit together."""

    def objection(self, name: str, definition: Definition, options: Options) -> str:
        """Return why the settings cannot give a definition this name; empty if they can."""
        return ""

    def package_of(self, revision: str) -> str:
        """Return the name of the package of a revision among the packages of other revisions."""
        return revision

    def default_package(self, revision: str, extension: str) -> str:
        """Return the name of a package if none is asked for; empty if the language needs a name.

        Args:
            revision: Name of the revision.
            extension: Short name of the extension that the package is about; empty without one.
        """
        return ""

    def folder_of(self, out: Path, package: str) -> Path:
        """Return the folder of a package below `out`."""
        return out.joinpath(*package.split("."))

    def core_of(self, revision: str) -> str:
        """Return the full name of the package of a revision in this installation, on which extensions build."""
        return self.package_of(revision)

    def diagnostics(self, protocol: Protocol) -> tuple[Diagnostic, ...]:
        """Return how the schema was read where it breaks a rule, rules about names in the language included.

        Raises:
            BadInput: In strict mode: it breaks a rule about names.
        """
        return protocol.diagnostics

    def check_files(self, files: Mapping[str, str], model: Model, options: Options) -> None:
        """Raise `BadInput` if the files of a model cannot be used; called before they are written."""

    def installed(self, store: Store, revisions: Sequence[str], extensions: Sequence[str]) -> list[Target]:
        """Return the packages of this installation, and of conversions beside them.

        Args:
            store: The revisions.
            revisions: The revisions to generate; all if there are none.
            extensions: The extensions of `revisions` to generate instead of them.

        Raises:
            BadInput: This installation has no bindings in the language.
        """
        raise BadInput("this installation has no bindings in that language", fix="give --out DIR and --package NAME")

    @property
    def sources(self) -> list[Path]:
        """The files and folders with the code of the emitter."""
        module = sys.modules[self.module]
        assert module.__file__ is not None
        return [Path(module.__file__).parent if module.__package__ else Path(module.__file__)]


@dataclass(frozen=True)
class Target(ABC):
    """A package to generate.

    Attributes:
        emitter: The emitter.
        folder: Folder of the package.
        options: Name of the package, command and templates.
        is_installed: True if the package is part of this installation, and imported by its tests.
        base: Working folder of a formatter.
    """

    emitter: Emitter
    folder: Path
    options: Options
    is_installed: bool = field(default=False, kw_only=True)
    base: Path = field(default_factory=Path, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the package in messages."""

    @property
    @abstractmethod
    def models(self) -> Sequence[Model]:
        """The inputs of the emitter, one after the other; raises `BadInput` if a schema breaks a convention."""

    @property
    @abstractmethod
    def file(self) -> Path | str | None:
        """The file that errors of the emitter are about."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The content of the package, in numbers."""

    @property
    @abstractmethod
    def gaps(self) -> list[str]:
        """Sentences about parts that the package lacks, because the inputs do."""

    @property
    def has_errors(self) -> bool:
        """True if a gap is an error of the installation."""
        return False

    @property
    def sources(self) -> Sequence[EffectiveSchema]:
        """The schemas whose corrections and copies are reported for this package."""
        return ()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How the schema was read where it breaks a rule; raises `BadInput` as `Emitter.diagnostics`."""
        return ()

    @property
    def stale_pages(self) -> Mapping[Path, str]:
        """Pages outside of the package that must change -> their text."""
        return {}

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs of the emitter, as text."""
        folder = self.options.templates
        files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder is not None else []
        return *map(repr, self.models), repr(self.options), *(f"{path}\0{path.read_bytes()!r}" for path in files)

    def render(self) -> dict[str, str]:
        """Return file name -> text; raises `BadInput` as `models`."""
        files: dict[str, str] = {}
        for model in self.models:
            with _guarded(self.emitter), locating(self.file):
                files |= checked(self.emitter.emit(model, self.options), self.emitter)
        command = self.options.settings.formatter
        if not command:
            return files
        taken = {name: text for name, text in files.items() if fnmatch(name, self.emitter.formats)}
        return files | formatted(taken, command, self.folder, self.base)

    def check_files(self, files: Mapping[str, str]) -> None:
        """Raise `BadInput` if the files cannot be used; packages of the installation are checked by its tests."""
        for model in self.models if not self.is_installed else ():
            with _guarded(self.emitter), locating(self.file):
                self.emitter.check_files(files, model, self.options)


@dataclass(frozen=True)
class Bindings(Target):
    """The bindings of a revision or of an extension.

    Attributes:
        source: The effective schema.
        only: Capabilities to restrict the package to; empty means everything.
        extension: The extension, among those of `source`, that the package is about; None for a revision.
        printed: The protocol model, if it was printed; `source` is empty then.
    """

    source: EffectiveSchema
    only: tuple[str, ...] = ()
    extension: ExtensionSchema | None = None
    printed: Protocol | None = None

    @property
    def name(self) -> str:
        """`2026-07-28`, or with an extension `2026-07-28 tasks@2026-07-28`."""
        return f"{self.source.revision} {self.extension.label}" if self.extension else self.source.revision

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol model, restricted to `only` and with the names of the settings.

        Raises:
            BadInput: The schema breaks a convention.
        """
        protocol = slice_protocol(self.whole, self.only) if self.only else self.whole
        names = self.options.settings.names
        return protocol.renamed(names) if names else protocol

    @cached_property
    def whole(self) -> Protocol:
        """The protocol model with the names of the schema; raises `BadInput` as `protocol`."""
        return build(self.source) if self.printed is None else self.printed

    @property
    def models(self) -> Sequence[Model]:
        """The protocol model alone."""
        return (Model(self.protocol),)

    @property
    def file(self) -> Path | str | None:
        """The schema file."""
        return self.extension.file if self.extension else self.source.file

    @property
    def summary(self) -> str:
        """Numbers of definitions and methods."""
        origin = self.extension.id if self.extension else ""
        counted = self.protocol.definitions.values(), self.protocol.methods
        definitions, methods = (sum(one.origin == origin for one in these) for these in counted)
        return f"{definitions:3} definitions  {methods:2} methods"

    @property
    def gaps(self) -> list[str]:
        """A sentence if the revision lacks definitions for a connection."""
        made, missing = "types and stubs", ", ".join(self.protocol.facts.missing)
        if not self.protocol.methods:
            made, missing = "types", "message, which is an object with a constant 'method'"
        fact = f"{self.protocol.revision}: {made} only, nothing can connect: there is no {missing}"
        return [fact] if missing else []

    @property
    def sources(self) -> Sequence[EffectiveSchema]:
        """The schema."""
        return (self.source,)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How the schema was read where it breaks a rule; raises `BadInput` as `Emitter.diagnostics`."""
        return self.emitter.diagnostics(self.protocol)


@dataclass(frozen=True)
class Bridges(Target):
    """The conversions between the revisions of a checkout, or of a user.

    Attributes:
        store: The revisions.
        users: True for all revisions of the user, or the name of one; False for the checkout.
        page: The page about all conversions, or None.
    """

    store: Store
    users: bool | str = False
    page: Path | None = None

    @property
    def name(self) -> str:
        """`bridges`."""
        return BRIDGES

    @property
    def models(self) -> Sequence[Model]:
        """The revisions with their conversions; raises `BadInput` as `conversion.source.models`."""
        return self._models

    @cached_property
    def _models(self) -> Sequence[Model]:
        return models(self.store, users=self.users)

    @property
    def plans(self) -> list[Plan]:
        """The conversions."""
        return [plan for model in self.models for plan in model.bridges]

    @property
    def file(self) -> Path:
        """The file of rules."""
        return rule_file(self.store, users=bool(self.users))

    @property
    def summary(self) -> str:
        """Numbers of steps and of differences with a rule."""
        rules = sum(place.rule is not None for plan in self.plans for place in plan.differences)
        return f"{len(self.plans)} steps  {rules} differences with a rule"

    @property
    def gaps(self) -> list[str]:
        """Sentences about differences that need a rule, and about rules without a difference."""
        missing = sum(len(plan.missing) for plan in self.plans)
        refused = f"{missing} differences without a rule are refused"
        lacking = [f"bridges: {refused}; list them with: mcp-bindgen bridges --missing"] if missing else []
        unused = (f"{plan.name}: {'.'.join(rule.path)}" for plan in self.plans for rule in plan.unused)
        return [*lacking, *(f"{self.file}: {rule} matches no difference; remove the rule" for rule in unused)]

    @property
    def has_errors(self) -> bool:
        """True for gaps in the installation; for drafts of a user, such places are refused."""
        return not self.users and bool(self.gaps)

    @property
    def stale_pages(self) -> Mapping[Path, str]:
        """The page about all conversions, where there is one and it does not describe the plans."""
        if self.page is None:
            return {}
        text = page(self.plans)
        is_current = self.page.exists() and self.page.read_text("utf-8") == text
        return {} if is_current else {self.page: text}


@contextmanager
def _guarded(emitter: Emitter) -> Generator[None]:
    """Raise `BadInput` for an error in the code of another distribution; an error of ours keeps its traceback."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, BadInput) or emitter.module.startswith(f"{__package__}."):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInput(f"the emitter {emitter.module} raised {reason[:300]}", fix="correct the emitter") from None


def checked(files: Mapping[str, str], emitter: Emitter) -> dict[str, str]:
    """Return the files of an emitter with plain line ends, as `writer` compares them.

    Raises:
        BadInput: The emitter returned no mapping of texts, a name is no plain file name, or a header is missing.
    """
    try:
        files = _FILES.validate_python(dict(files), strict=True)
    except (TypeError, ValueError):
        fix = "return a dict of file name -> text"
        raise BadInput(f"the emitter {emitter.module} returned no mapping of texts", fix=fix) from None
    for name, text in files.items():
        if name in ("", ".", "..") or "/" in name or "\\" in name:
            raise BadInput(f"the emitter returned the file name {name!r}", fix="return names without folders")
        if not is_generated(text.encode()):
            raise BadInput(
                f"the emitter returned {name} without our header", fix="begin the file with options.header()"
            )
    return {name: text.replace("\r\n", "\n") for name, text in files.items()}
