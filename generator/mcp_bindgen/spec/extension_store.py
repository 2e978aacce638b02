"""Import, load and verify the extensions of the `schema/` folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import canonical, document, patches, revisions, sources
from .effective import EffectiveSchema, ExtensionSchema
from .errors import BadInput, locating, suggestion
from .extension import check_id, extend, module_of, own_structure, read_extension
from .json import is_object
from .keywords import DIALECT, Schema
from .reading import Reading
from .semantics import read_extension_facts
from .sources import Readable, Source
from .store import Store, external
from .toml import read_toml
from .transaction import Change, put, read

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_FOLDER = "extensions"
_PINS = "extensions.toml"
_SCHEMA, _FACTS, _PATCHES, _DOCS = "schema.json", "semantics.toml", "patches.toml", "docs.toml"
_KEYS = ("status", "date", "source", "sha256", "structure")


@dataclass(frozen=True)
class ExtensionPin:
    """The origin of the structure of one version of an extension.

    Attributes:
        id: The extension.
        version: The version.
        status: `released` or `draft`.
        date: The day on which upstream last changed the file.
        source: Where the file is from: a repository and a commit, or a package and its version.
        sha256: Digest of the file's bytes.
        structure: Digest of the canonical structure of its own definitions, before patches.
    """

    id: str
    version: str
    status: str
    date: str
    source: str
    sha256: str
    structure: str

    @property
    def path(self) -> str:
        """The folder of its files, from that of schemas."""
        return f"{_FOLDER}/{self.id}/{self.version}"


class Extensions:
    """The extensions in a `schema/` folder, or in two: those of the installation and of the user.

    Args:
        store: The folder with the revisions that they extend.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def pins(self) -> list[ExtensionPin]:
        """All versions of all extensions, by id, the oldest first and drafts without a date last."""
        folders = [folder for folder in (self.store.users, self.store.root) if folder is not None]
        found = {(pin.id, pin.version): pin for folder in folders for pin in _load(folder / _PINS)}
        return [found[key] for key in sorted(found, key=lambda key: (key[0], revisions.order(key[1])))]

    def is_extension(self, name: str) -> bool:
        """Return whether `name` is that of an extension, as `pin` takes them."""
        label = name.partition("@")[0]
        return any(label in self._names(pin) for pin in self.pins)

    def module(self, pin: ExtensionPin) -> str:
        """Return the name of the package of an extension."""
        return module_of(self._facts(pin))

    def cores(self, pin: ExtensionPin) -> list[str]:
        """Return the core revisions that an extension says it extends, those that are known."""
        known = self.store.pins
        return [name for name in self._facts(pin)["extension"]["core"] if name in known]

    def core(self, pin: ExtensionPin) -> str:
        """Return the newest core revision that an extension extends; raise `BadInput` where none is known."""
        known = [name for name in self.store.pins if name in self.cores(pin)]
        if not known:
            raise BadInput(
                f"{pin.id}@{pin.version} names no core revision that is known",
                file=self.folder(pin) / _FACTS,
                pointer="/extension/core",
                fix="import it first",
            )
        return known[-1]

    def pin(self, name: str) -> ExtensionPin:
        """Return the pin of an extension: its id, that without the prefix, or its module, alone or with `@VERSION`.

        Without a version it is the newest that is released.

        Raises:
            BadInput: There is no such extension or version.
        """
        label, _, version = name.partition("@")
        versions = [pin for pin in self.pins if label in self._names(pin)]
        if not versions:
            names = [self.module(pin) for pin in self.pins]
            raise BadInput(f"there is no extension {label!r}", fix=suggestion(label, dict.fromkeys(names), cutoff=0))
        released = [pin for pin in versions if pin.status == "released"] or versions
        found = [pin for pin in versions if pin.version == version] if version else released
        if not found:
            known = [pin.version for pin in versions]
            raise BadInput(f"{label} has no version {version!r}", fix=suggestion(version, known, cutoff=0))
        return found[-1]

    def effective(self, name: str | ExtensionPin, core: EffectiveSchema) -> ExtensionSchema:
        """Return an extension as it extends `core`.

        Raises:
            BadInput: It is unknown, is none of that revision, its files are damaged, or a mistake that it is known to
                have is gone.
        """
        pin = name if isinstance(name, ExtensionPin) else self.pin(name)
        folder = self.folder(pin)
        docs = self._docs(pin)
        return read_extension(
            folder / _SCHEMA,
            folder / _FACTS,
            core,
            version=pin.version,
            ledger=self.store.ledger,
            corrections=patches.load(folder / _PATCHES),
            docs=None if self.is_users(pin) else read_toml(docs) if docs.exists() else {},
            draft=pin.status == "draft",
            strict=self.store.strict or pin.status == "released",
        )

    def held_against(self, pin: ExtensionPin, file: Readable, core: EffectiveSchema) -> ExtensionSchema:
        """Return what a schema file makes of an extension, with the facts, words and patches of a known version.

        Raises:
            BadInput: The file is not usable, or those do not fit it.
        """
        folder, docs = self.folder(pin), self._docs(pin)
        return read_extension(
            file,
            folder / _FACTS,
            core,
            ledger=self.store.ledger,
            corrections=patches.load(folder / _PATCHES),
            docs=None if self.is_users(pin) else read_toml(docs) if docs.exists() else {},
            strict=self.store.strict,
        )

    def of(self, core: EffectiveSchema) -> tuple[ExtensionSchema, ...]:
        """Return the extensions of a core revision, each in its newest version that is released."""
        names = dict.fromkeys(pin.id for pin in self.pins if pin.status == "released")
        found = [self.pin(name) for name in names]
        return tuple(self.effective(pin, core) for pin in found if core.revision in self.cores(pin))

    def structure(self, pin: ExtensionPin) -> Schema:
        """Return the committed structure of an extension, before patches: its own definitions."""
        raw, _ = document.load(self.folder(pin) / _SCHEMA)
        return {"$schema": DIALECT, "$defs": raw["$defs"]}

    def is_pinned(self, pin: ExtensionPin) -> bool:
        """Return whether the committed structure is the one that was imported."""
        return canonical.digest(self.structure(pin)) == pin.structure

    def add(
        self,
        name: str,
        file: Readable,
        *,
        source: str,
        status: str | None = None,
        changed: date | None = None,
        semantics: Path | None = None,
        root: Path | None = None,
        reading: Reading | None = None,
    ) -> tuple[ExtensionPin, tuple[str, ...]]:
        """Import an upstream file: writes the structure of its own definitions and pins it.

        Args:
            name: `ID@VERSION`.
            file: The file.
            source: Where it is from; may be empty for a draft.
            status: `released` or `draft`; by default, what has a date or a number for a version is released.
            changed: When upstream last changed it; by default the date that the version is, else today.
            semantics: Its facts; without them, those that were there stay.
            root: The folder of the user to write to, which keeps the words of the file; by default ours, without them.
            reading: Decides about what breaks a rule in a draft; by default, and in a release, it is refused.

        Returns:
            The pin, and one line for each copy of a core definition that says something else than core.

        Raises:
            BadInput: A file is not usable, the name is not one, or its facts are missing.
        """
        label, _, version = name.partition("@")
        check_id(label)
        known = status or ("draft" if version in ("", "draft") else "released")
        revisions.check_name(version, draft=True)
        upstream = sources.read(file)
        folder = f"{_FOLDER}/{label}/{version}"
        prose, root = root is not None, root or self.store.root
        if known == "released" and not source and not prose:
            raise BadInput("it is not known where the file is from", file=upstream.label, fix="give --commit")
        stated = semantics or root / folder / _FACTS
        facts = read_extension_facts(stated)
        if facts["extension"]["id"] != label:
            raise BadInput(f"is about {facts['extension']['id']!r}", file=stated, fix=f"write id = {label!r}")
        own, copies, sha = self._own(facts, stated, upstream, reading if known == "draft" else None)
        written = canonical.canonical({"$schema": DIALECT, "$defs": own})
        day = changed or (date.fromisoformat(version) if revisions.is_date(version) else date.today())
        pin = ExtensionPin(label, version, known, day.isoformat(), source, sha, canonical.digest(written))
        texts = {
            f"{folder}/{_SCHEMA}": canonical.dumps({"$schema": DIALECT, "$defs": own} if prose else written),
            _PINS: _revised(root / _PINS, pin),
        }
        if semantics is not None:
            texts[f"{folder}/{_FACTS}"] = semantics.read_text("utf-8")
        put(root, {path: Change(read(root / path), text.encode()) for path, text in texts.items()})
        return pin, copies

    def remove(self, name: str) -> ExtensionPin:
        """Remove a version of an extension from its folder, with its patches and facts; raise `BadInput` as `pin`."""
        pin = self.pin(name)
        folder = self.folder(pin)
        root = folder.parents[3]
        files = sorted(path for path in folder.glob("*") if path.is_symlink() or path.is_file())
        gone = {f"{pin.path}/{path.name}": Change(read(path), None) for path in files}
        table = _parsed(root / _PINS)
        entries: Any = table[pin.id]
        del entries[pin.version]
        if not entries:
            del table[pin.id]
        put(root, {**gone, _PINS: Change(read(root / _PINS), (table.as_string().strip("\n") + "\n").encode())})
        with suppress(OSError):  # it was gone, or somebody keeps more in it
            for empty in (folder, *folder.parents[:3]):
                empty.rmdir()
        return pin

    def verify(self, name: str, file: Readable) -> tuple[bool, list[str]]:
        """Compare an upstream file with what is committed.

        Returns:
            Whether the file is byte for byte the pinned one, and the pointers at which its own structure differs.
        """
        pin = self.pin(name)
        folder = self.folder(pin)
        own, _, sha = self._own(self._facts(pin), folder / _FACTS, sources.read(file))
        ours = canonical.canonical(self.structure(pin))
        return sha == pin.sha256, canonical.differences(ours, canonical.canonical({"$schema": DIALECT, "$defs": own}))

    def _own(
        self, facts: Mapping[str, Any], stated: Path, source: Source, reading: Reading | None = None
    ) -> tuple[dict[str, Schema], tuple[str, ...], str]:
        """Return the own definitions of an upstream file, the copies that differ, and the sha256 of its bytes."""
        known = [name for name in self.store.pins if name in facts["extension"]["core"]]
        if not known:
            raise BadInput(
                "names no core revision that is known", file=stated, pointer="/extension/core", fix="import it first"
            )
        raw, sha = document.load(source)
        with locating(source.label):
            own, copies = own_structure(raw, self.store.effective(known[-1]), reading or Reading(), self.store.ledger)
        return own, tuple(map(str, copies)), sha

    def _names(self, pin: ExtensionPin) -> tuple[str, ...]:
        """Return what an extension may be called: its id, that without the prefix, its module."""
        return pin.id, pin.id.rpartition("/")[2], self.module(pin)

    def _docs(self, pin: ExtensionPin) -> Path:
        """Return the file with the words for a version: its own, else that of the newest that is released."""
        own = self.folder(pin) / _DOCS
        return own if own.exists() else self.folder(self.pin(pin.id)) / _DOCS

    def is_users(self, pin: ExtensionPin) -> bool:
        """Return whether an extension is one that only the user keeps."""
        return not self.folder(pin).is_relative_to(self.store.root)

    def folder(self, pin: ExtensionPin) -> Path:
        """Return the folder with the files of an extension."""
        ours = self.store.root / pin.path
        return ours if self.store.users is None or ours.exists() else self.store.users / pin.path

    def _facts(self, pin: ExtensionPin) -> dict[str, Any]:
        return read_extension_facts(self.folder(pin) / _FACTS)


def named(
    name: str | Source,
    store: Store,
    semantics: Mapping[str, Any] | None = None,
    extensions: Sequence[str] = (),
) -> EffectiveSchema:
    """Return the effective schema of what a command line names: a revision, an extension, or a schema file.

    Args:
        name: The name of a revision, of an extension on the newest core that it extends, or of a source.
        store: The `schema/` folder.
        semantics: The facts about schema files; by default those of the folder.
        extensions: Names of extensions to lay over it.

    Raises:
        BadInput: It is neither a revision, an extension, nor a source that can be read, or an extension is none of it.
    """
    known = Extensions(store)
    if isinstance(name, str) and is_extension(name, store):
        core = store.effective(known.core(known.pin(name)))
        extensions = (name, *extensions)
    elif isinstance(name, Source) or sources.is_source(name, store.pins):
        facts = store.semantics if semantics is None else semantics
        core = external(name, None, facts, store.ledger, strict=store.strict)
    else:
        core = store.effective(name)  # says which revisions there are
    return extend(core, *(known.effective(one, core) for one in extensions)) if extensions else core


def is_extension(name: str, store: Store) -> bool:
    """Return whether a command line names an extension, and not a revision, as `named` takes names."""
    return name not in store.pins and Extensions(store).is_extension(name)


def _load(path: Path) -> list[ExtensionPin]:
    """Return the pins of an `extensions.toml`; no file means no extension."""
    table = read_toml(path) if path.exists() else {}
    with locating(path):
        return [_pin(name, version, entry) for name, versions in table.items() for version, entry in versions.items()]


def _pin(name: str, version: str, entry: Any) -> ExtensionPin:
    if not is_object(entry) or entry.keys() != set(_KEYS) or not all(isinstance(entry[key], str) for key in _KEYS):
        raise BadInput(f"the entry of {name}@{version} is not complete", fix=f"give it the strings {', '.join(_KEYS)}")
    check_id(name)
    revisions.check_name(version, draft=True)  # both are also names of folders
    return ExtensionPin(name, version, **entry)


def _revised(path: Path, pin: ExtensionPin) -> str:
    """Return the text of an `extensions.toml` with one entry added or replaced; all else is as it was."""
    import tomlkit  # takes time to load, and only an import needs it

    table = _parsed(path)
    values = asdict(pin)
    entry = tomlkit.table()
    for key in _KEYS:
        entry.add(key, values[key])
    if pin.id not in table:
        table.add(pin.id, tomlkit.table(is_super_table=True))
    versions: Any = table[pin.id]
    versions[pin.version] = entry
    return tomlkit.dumps(table)


def _parsed(path: Path) -> TOMLDocument:
    import tomlkit

    if not path.exists():
        return tomlkit.document()
    _load(path)
    return tomlkit.parse(path.read_text("utf-8"))
