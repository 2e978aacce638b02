"""Import, load and verify the revisions and extensions of the `schema/` folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from . import canonical, document, patches, pins, revisions, sources
from .diagnostics import DiagnosticContext
from .effective import EffectiveSchema, ExtensionSchema, era
from .errors import BadInput, locating, suggestion
from .extension import check_id, extend, module_of, own_structure, read_extension
from .keywords import DIALECT, Schema
from .patches import Patch
from .pins import EXTENSIONS, REVISIONS, Pin
from .semantics import merge_semantics, read_docs, read_extension_facts, read_semantics
from .sources import Readable, Source
from .transaction import Change, put, read

_SCHEMA, _FACTS, _PATCHES, _DOCS = "schema.json", "semantics.toml", "patches.toml", "docs.toml"


@dataclass(frozen=True)
class Upstream:
    """Upstream file to import.

    Attributes:
        file: The file.
        source: Its commit, or its origin; may be empty for a draft.
        status: `released` or `draft`; by default a date as the name means released, and so does a version that is not
            called `draft`.
        changed: Day of its last change; by default the date in the name, else today.
        semantics: Facts for this revision only, in a file like `semantics.toml`, or facts of the extension; by default
            existing ones stay.
        context: Reports broken rules in a draft; by default, and in a release, they are errors.
    """

    file: Readable
    source: str = ""
    status: str | None = None
    changed: date | None = None
    semantics: Path | None = None
    context: DiagnosticContext | None = None


_INSTALLED: dict[tuple[Pin, bool], EffectiveSchema] = {}
"""Keep the effective schemas of the installation: its folder stays as it is while a process runs."""


@cache
def find() -> Path:
    """Return the `schema/` folder of this installation: of the checkout, else of the wheel."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "schema", here.parents[1] / "schema"):
        if (candidate / REVISIONS).exists():
            return candidate
    raise BadInput("the schema folder is missing from this installation", fix="reinstall mcp-bindgen")


def user_folder() -> Path | None:
    """Return the user's folder of imported revisions and bindings, or `None` if Python ignores user folders.

    Raises:
        BadInput: The environment variable with its path is not an absolute path.
    """
    from mcp_bindgen.user_bindings import home  # not every command needs it

    with locating(None, ValueError):
        return home()


class Store:
    """A `schema/` folder, or two: the folder of the installation and the user's.

    Args:
        root: The folder; by default the two folders.
        users: The user's schema folder; by default in `user_folder`.
        strict: True to refuse drafts and external schema files that break a rule, as releases are.

    Attributes:
        root: The folder, or the folder of the installation.
        users: The user's schema folder, or `None` if it is empty. `root` hides revisions of the same name there.
    """

    def __init__(self, root: Path | None = None, *, users: Path | None = None, strict: bool = False) -> None:
        self.strict = strict
        self.root = root if root is not None else find()
        if root is None and users is None:
            folder = user_folder()
            users = folder / "schema" if folder is not None else None
        is_kept = users is not None and any((users / table).exists() for table in (REVISIONS, EXTENSIONS))
        self.users = users if is_kept else None
        self._effective: dict[tuple[Pin, bool], EffectiveSchema] = {}

    @cached_property
    def semantics(self) -> dict[str, Any]:
        """The facts in `semantics.toml`."""
        return read_semantics(self.root / _FACTS)

    @cached_property
    def docs(self) -> dict[str, Any]:
        """The documentation in `docs.toml`."""
        return read_docs(self.root / _DOCS)

    @cached_property
    def errata(self) -> tuple[Patch, ...]:
        """The known errors of upstream files, in `patches.toml`."""
        return patches.load(self.root / _PATCHES)

    # Pins

    def _pins(self, folder: Path | None, table: str) -> dict[tuple[str, str], Pin]:
        if folder is None or (not (folder / table).exists() and (table, folder) != (REVISIONS, self.root)):
            return {}
        return {(pin.id, pin.name): pin for pin in pins.load(folder, table)}

    def _all(self, table: str) -> list[Pin]:
        found = {**self._pins(self.users, table), **self._pins(self.root, table)}
        return sorted(found.values(), key=lambda pin: (pin.id, revisions.order(pin.name)))

    @property
    def pins(self) -> dict[str, Pin]:
        """Revision -> pin, oldest first and undated drafts last."""
        return {pin.name: pin for pin in self._all(REVISIONS)}

    @property
    def extension_pins(self) -> list[Pin]:
        """Pins of all versions of all extensions: by id, oldest first and undated drafts last."""
        return self._all(EXTENSIONS)

    @property
    def users_pins(self) -> dict[str, Pin]:
        """Revision -> pin, of the revisions in the user's folder."""
        return {pin.name: pin for pin in self._pins(self.users, REVISIONS).values()}

    @property
    def hidden(self) -> list[Pin]:
        """Pins of the user's revisions that the installation has too."""
        ours = self._pins(self.root, REVISIONS)
        return [pin for key, pin in self._pins(self.users, REVISIONS).items() if key in ours]

    @property
    def newest(self) -> str:
        """The newest released revision, or the newest draft if none is released."""
        known = self.pins
        released = [name for name, pin in known.items() if pin.status == "released"]
        return (released or list(known))[-1]

    def pin(self, revision: str) -> Pin:
        """Return the pin of a revision; raise `BadInput` with the nearest name if it is unknown."""
        known = self.pins
        if revision not in known:
            raise revisions.unknown(revision, known)
        return known[revision]

    def is_extension(self, name: str) -> bool:
        """Return whether a command line names an extension with `name`, and not a revision."""
        label = name.partition("@")[0]
        return name not in self.pins and any(label in self._names(pin) for pin in self.extension_pins)

    def extension(self, name: str) -> Pin:
        """Return the pin of an extension, named by id, id without prefix or module, alone or with `@VERSION`.

        Without a version it is the newest released version.

        Raises:
            BadInput: The extension or the version is unknown.
        """
        label, _, version = name.partition("@")
        known = self.extension_pins
        versions = [pin for pin in known if label in self._names(pin)]
        if not versions:
            names = dict.fromkeys(map(self.module, known))
            raise BadInput(f"there is no extension {label!r}", fix=suggestion(label, names))
        released = [pin for pin in versions if pin.status == "released"] or versions
        found = [pin for pin in versions if pin.name == version] if version else released
        if not found:
            names = dict.fromkeys(pin.name for pin in versions)
            raise BadInput(f"{label} has no version {version!r}", fix=suggestion(version, names))
        return found[-1]

    def any_pin(self, name: str | Pin) -> Pin:
        """Return the pin of a revision or an extension; raise `BadInput` if neither has this name."""
        if isinstance(name, Pin):
            return name
        return self.extension(name) if self.is_extension(name) else self.pin(name)

    def is_users(self, name: str | Pin) -> bool:
        """Return whether only the user's folder has a revision or extension; raise `BadInput` as `any_pin`."""
        pin = self.any_pin(name)
        return self.users is not None and (pin.id, pin.name) not in self._pins(self.root, pin.table)

    def folder(self, name: str | Pin) -> Path:
        """Return the folder with the files of a revision or extension; raise `BadInput` as `any_pin`."""
        pin = self.any_pin(name)
        return (self.users if self.users is not None and self.is_users(pin) else self.root) / pin.path

    # Schemas

    def structure(self, name: str | Pin) -> Schema:
        """Return the imported structure of a revision, or of the own definitions of an extension, before patches."""
        pin = self.any_pin(name)
        path = self.folder(pin) / _SCHEMA
        found, _ = document.load(path)
        if pin.id:
            return {"$schema": DIALECT, "$defs": found["$defs"]}
        is_imported = canonical.is_canonical(found, pin.structure)  # and so it was checked
        return found if is_imported else document.read(path)[0]

    def is_pinned(self, name: str | Pin) -> bool:
        """Return whether the structure equals the imported one."""
        pin = self.any_pin(name)
        return canonical.digest(self.structure(pin)) == pin.structure

    def effective(self, revision: str) -> EffectiveSchema:
        """Return the effective schema of a revision.

        Raises:
            BadInput: The revision is unknown, its files are damaged, or one of its known errors is gone.
        """
        pin = self.pin(revision)
        known = _INSTALLED if self.folder(pin).parent == find() else self._effective
        key = pin, self.strict
        if key not in known:
            known[key] = self._read(pin)
        return known[key]

    def _read(self, pin: Pin) -> EffectiveSchema:
        revision, folder = pin.name, self.folder(pin)
        with locating(self.root / _PATCHES):
            structure = self.structure(pin)
            patched, applied = patches.apply(structure, self.errata, revision)
            patched = document.normalise_again(patched, structure)
        is_draft = pin.status == "draft"
        own = folder / _FACTS
        return EffectiveSchema(
            revision=revision,
            definitions=patched["$defs"],
            digest=canonical.digest(patched),
            semantics=merge_semantics(self.semantics, read_semantics(own)) if own.exists() else self.semantics,
            docs=self.docs if folder.parent == self.root else None,
            file=folder / _SCHEMA,
            draft=is_draft,
            applied=applied,
            context=DiagnosticContext(folder / _SCHEMA, strict=self.strict or not is_draft),
        )

    def extension_schema(self, name: str | Pin, core: EffectiveSchema, file: Readable | None = None) -> ExtensionSchema:
        """Return an extension of a core revision.

        Args:
            name: The extension.
            core: The revision.
            file: A schema file to read with the facts, documentation and patches of the extension.

        Raises:
            BadInput: The extension is unknown or does not extend `core`, a file is damaged, or a known error is gone.
        """
        pin = name if isinstance(name, Pin) else self.extension(name)
        folder = self.folder(pin)
        docs = folder / _DOCS
        if not docs.exists():  # a draft has the documentation of the newest release
            docs = self.folder(self.extension(pin.id)) / _DOCS
        return read_extension(
            file if file is not None else folder / _SCHEMA,
            folder / _FACTS,
            core,
            version=pin.name if file is None else None,
            errata=self.errata,
            corrections=patches.load(folder / _PATCHES),
            docs=None if self.is_users(pin) else read_docs(docs) if docs.exists() else {},
            draft=file is not None or pin.status == "draft",
            strict=self.strict or (file is None and pin.status == "released"),
            stored=file is None,
        )

    def extensions_of(self, core: EffectiveSchema) -> tuple[ExtensionSchema, ...]:
        """Return the newest released version of each extension of a core revision."""
        return tuple(self.extension_schema(pin, core) for pin in self.extensions_for(core.revision))

    def extensions_for(self, revision: str) -> list[Pin]:
        """Return the pins of the newest released version of each extension of a core revision."""
        newest = {pin.id: pin for pin in self.extension_pins if pin.status == "released"}
        return [pin for pin in newest.values() if revision in self.facts(pin)["extension"]["core"]]

    def module(self, pin: Pin) -> str:
        """Return the name of the package of an extension."""
        return module_of(self.facts(pin))

    def cores(self, pin: Pin) -> list[str]:
        """Return the known core revisions that an extension extends, oldest first."""
        stated = self.facts(pin)["extension"]["core"]
        return [name for name in self.pins if name in stated]

    def core(self, pin: Pin) -> str:
        """Return the newest core revision that an extension extends; raise `BadInput` if none is known."""
        return self._newest_core(self.facts(pin), self.folder(pin) / _FACTS)

    def _newest_core(self, facts: Mapping[str, Any], stated: Path) -> str:
        found = [name for name in self.pins if name in facts["extension"]["core"]]
        if not found:
            raise BadInput(
                "names no core revision that is known", file=stated, pointer="/extension/core", fix="import it first"
            )
        return found[-1]

    def _names(self, pin: Pin) -> tuple[str, ...]:
        """Return the names of an extension: its id, the id without the prefix, its module."""
        return pin.id, pin.id.rpartition("/")[2], self.module(pin)

    def facts(self, pin: Pin) -> dict[str, Any]:
        """Return the facts of an extension."""
        return read_extension_facts(self.folder(pin) / _FACTS)

    # Changes of the folder

    def add(self, revision: str, upstream: Upstream, *, prose: bool = False) -> Pin:
        """Import an upstream file of a revision into `root`: write its structure and its pin.

        Args:
            revision: Name of the revision: its date, or any name for a draft.
            upstream: The file.
            prose: True to keep the prose of the file, for a revision without our documentation.

        Raises:
            BadInput: A file is not usable, the name is not valid, or the table of pins is damaged.
        """
        status = upstream.status or ("released" if revisions.is_date(revision) else "draft")
        own_day = revisions.check_name(revision, draft=status == "draft")
        file = sources.read(upstream.file)
        if status == "released" and not upstream.source and not prose:
            raise BadInput("the upstream commit is not known", file=file.label, fix="give --commit")
        found, sha = document.read(file, upstream.context if status == "draft" else None)
        day, digest = upstream.changed or own_day or date.today(), canonical.digest(found)
        pin = Pin(revision, status, day.isoformat(), upstream.source, sha, digest, era(found["$defs"]))
        if upstream.semantics is not None:
            read_semantics(upstream.semantics)
        _write(self.root, pin, found if prose else canonical.canonical(found), upstream.semantics)
        return pin

    def add_extension(self, name: str, upstream: Upstream, root: Path | None = None) -> tuple[Pin, tuple[str, ...]]:
        """Import an upstream file of an extension: write the structure of its own definitions and its pin.

        Args:
            name: `ID@VERSION`.
            upstream: The file.
            root: The user's schema folder, which keeps the prose of the file; by default our folder, without prose.

        Returns:
            The pin, and one line for each copy of a core definition that differs from core.

        Raises:
            BadInput: A file is not usable, the name is not valid, or the facts are missing.
        """
        label, _, version = name.partition("@")
        check_id(label)
        status = upstream.status or ("draft" if version in ("", "draft") else "released")
        revisions.check_name(version, draft=True)
        file = sources.read(upstream.file)
        prose, root = root is not None, root or self.root
        if status == "released" and not upstream.source and not prose:
            raise BadInput("it is not known where the file is from", file=file.label, fix="give --commit")
        stated = upstream.semantics or root / Pin(version, "", "", "", "", "", id=label).path / _FACTS
        facts = read_extension_facts(stated)
        if facts["extension"]["id"] != label:
            raise BadInput(f"is about {facts['extension']['id']!r}", file=stated, fix=f"write id = {label!r}")
        own, copies, sha = self._own(facts, stated, file, upstream.context if status == "draft" else None)
        bare = canonical.canonical(own)
        day = upstream.changed or (date.fromisoformat(version) if revisions.is_date(version) else date.today())
        pin = Pin(version, status, day.isoformat(), upstream.source, sha, canonical.digest(bare), id=label)
        _write(root, pin, own if prose else bare, upstream.semantics)
        return pin, copies

    def remove(self, name: str | Pin) -> Pin:
        """Remove a revision or a version of an extension from its folder, with its patches and facts; return its pin.

        Raises:
            BadInput: It is unknown, or its files cannot be removed.
        """
        pin = self.any_pin(name)
        folder = self.folder(pin)
        root = self.users if self.users is not None and self.is_users(pin) else self.root
        files = sorted(path for path in folder.glob("*") if path.is_symlink() or path.is_file())
        gone = {f"{pin.path}/{path.name}": Change(read(path), None) for path in files}
        rest = pins.revised(root, pin, is_removed=True).encode()
        put(root, {**gone, pin.table: Change(read(root / pin.table), rest)})
        with suppress(OSError):  # the folder is gone, or it is not empty
            for empty in [root / pin.path, *(root / pin.path).parents]:
                if empty == root:
                    break
                empty.rmdir()
        return pin

    def verify(self, name: str | Pin, file: Readable) -> tuple[bool, list[str]]:
        """Compare an upstream file with the imported structure.

        Returns:
            Whether the file is byte for byte the pinned file, and the pointers to the differences of the structures.
        """
        pin = self.any_pin(name)
        if pin.id:
            theirs, _, sha = self._own(self.facts(pin), self.folder(pin) / _FACTS, sources.read(file))
        else:
            theirs, sha = document.read(file)
        ours = canonical.canonical(self.structure(pin))
        return sha == pin.sha256, canonical.differences(ours, canonical.canonical(theirs))

    def _own(
        self, facts: Mapping[str, Any], stated: Path, source: Source, context: DiagnosticContext | None = None
    ) -> tuple[Schema, tuple[str, ...], str]:
        """Return the own structure of an upstream file, the differing copies, and the sha256 of its bytes."""
        core = self._newest_core(facts, stated)
        raw, sha = document.load(source)
        with locating(source.label):
            own, copies = own_structure(raw, self.effective(core), context or DiagnosticContext(), self.errata)
        return {"$schema": DIALECT, "$defs": own}, tuple(map(str, copies)), sha


def _write(root: Path, pin: Pin, structure: Schema, semantics: Path | None) -> None:
    """Write an imported structure, its pin and its facts, all or nothing."""
    texts = {f"{pin.path}/{_SCHEMA}": canonical.dumps(structure), pin.table: pins.revised(root, pin)}
    if semantics is not None:
        texts[f"{pin.path}/{_FACTS}"] = semantics.read_text("utf-8")
    put(root, {name: Change(read(root / name), text.encode()) for name, text in texts.items()})


def external(
    file: Readable,
    revision: str | None,
    semantics: Mapping[str, Any],
    errata: Sequence[Patch] = (),
    *,
    strict: bool = False,
) -> EffectiveSchema:
    """Return the effective schema of any file, such as a draft or a fork, documented by its own prose.

    Args:
        file: The file.
        revision: Name of its revision; by default the name of the source.
        semantics: The facts about it.
        errata: The known errors of upstream files, which are corrected.
        strict: True to refuse broken rules; by default the protocol model lists how they were handled.

    Raises:
        BadInput: The file is not a usable schema.
    """
    source = sources.read(file)
    context = DiagnosticContext(source.label, strict=strict)
    upstream, _ = document.read(source, context)
    loaded, applied = patches.apply(upstream, errata)
    if applied:
        with locating(source.label):
            loaded = document.normalise_again(loaded, upstream)
    name = revision if revision is not None else source.revision
    return EffectiveSchema(
        name,
        loaded["$defs"],
        canonical.digest(loaded),
        semantics,
        file=source.label,
        applied=applied,
        draft=not revisions.is_date(name),
        context=context,
    )


def named(
    name: str | Source,
    store: Store,
    semantics: Mapping[str, Any] | None = None,
    extensions: Sequence[str] = (),
) -> EffectiveSchema:
    """Return the effective schema that a command line names: a revision, an extension, or a schema file.

    Args:
        name: A revision, an extension (on the newest core that it extends), or a source.
        store: The `schema/` folder.
        semantics: The facts about schema files; by default the facts of the folder.
        extensions: Names of extensions to add.

    Raises:
        BadInput: `name` is neither a revision, an extension, nor a readable source, or an extension is unknown.
    """
    if isinstance(name, str) and store.is_extension(name):
        core = store.effective(store.core(store.extension(name)))
        extensions = (name, *extensions)
    elif isinstance(name, Source) or sources.is_source(name, store.pins):
        facts = store.semantics if semantics is None else semantics
        core = external(name, None, facts, store.errata, strict=store.strict)
    else:
        core = store.effective(name)  # its error lists the revisions
    return extend(core, *(store.extension_schema(one, core) for one in extensions)) if extensions else core
