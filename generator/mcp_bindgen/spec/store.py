"""Import, load and verify the revisions of the `schema/` folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from . import canonical, document, patches, revisions, sources
from .effective import EffectiveSchema, era
from .errors import BadInput, locating
from .keywords import Schema
from .patches import Patch
from .reading import Reading
from .revisions import Pin
from .semantics import merge_semantics, read_semantics
from .sources import Readable
from .toml import read_toml
from .transaction import Change, put, read

_SCHEMAS = "schema"
_PINS = "revisions.toml"
_EXTENSIONS = "extensions.toml"
_SCHEMA = "schema.json"
_FACTS = "semantics.toml"


def find() -> Path:
    """Return the `schema/` folder that belongs to this installation: of the checkout, else of the wheel."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "schema", here.parents[1] / "schema"):
        if (candidate / "revisions.toml").exists():
            return candidate
    raise BadInput("the schema folder is missing from this installation", fix="reinstall mcp-bindgen")


def user_folder() -> Path | None:
    """Return the folder in which the user keeps revisions and their bindings; `None` where Python leaves it out.

    Raises:
        BadInput: The environment variable that names it is no absolute path.
    """
    from mcp_bindgen.runtime.home import home  # not every command has to know

    try:
        return home()
    except ValueError as error:
        raise BadInput(str(error)) from None


class Store:
    """A `schema/` folder, or two: that of the installation, and what the user keeps beside it.

    Args:
        root: The folder; by default those two.
        users: What the user keeps, if not where `user_folder` says.
        strict: Whether drafts and schema files from elsewhere are refused where they break a rule, as releases are.

    Attributes:
        root: The folder, or that of the installation.
        users: What the user keeps; `None` where there is nothing. A revision of `root` hides one of that name there.
    """

    def __init__(self, root: Path | None = None, *, users: Path | None = None, strict: bool = False) -> None:
        self.strict = strict
        self.root = root if root is not None else find()
        if root is None and users is None:
            folder = user_folder()
            users = folder / _SCHEMAS if folder is not None else None
        keeps = users is not None and any((users / pins).exists() for pins in (_PINS, _EXTENSIONS))
        self.users = users if keeps else None

    @property
    def pins(self) -> dict[str, Pin]:
        """Revision name -> pin, oldest first and drafts without a date last."""
        found = {**self.users_pins, **revisions.load(self.root / _PINS)}
        return {name: found[name] for name in sorted(found, key=revisions.order)}

    @property
    def hidden(self) -> list[Pin]:
        """The pins of revisions that the user keeps, and that the installation has by now."""
        ours = revisions.load(self.root / _PINS)
        return [pin for name, pin in self.users_pins.items() if name in ours]

    @property
    def newest(self) -> str:
        """The newest revision, of those that are released if there is one."""
        pins = self.pins
        released = [name for name, pin in pins.items() if pin.status == "released"]
        return (released or list(pins))[-1]

    @property
    def users_pins(self) -> dict[str, Pin]:
        """Revision name -> pin, of those that the user keeps."""
        file = None if self.users is None else self.users / _PINS
        return revisions.load(file) if file is not None and file.exists() else {}

    def is_users(self, revision: str) -> bool:
        """Return whether a revision is one that only the user keeps; raises `BadInput` as `pin`."""
        self.pin(revision)
        return self.users is not None and revision not in revisions.load(self.root / _PINS)

    def folder_of(self, revision: str) -> Path:
        """Return the schema folder that a revision is from; raises `BadInput` as `pin`."""
        is_users = self.is_users(revision)
        return self.users if self.users is not None and is_users else self.root

    @cached_property
    def semantics(self) -> dict[str, Any]:
        """The facts of `semantics.toml`."""
        return read_semantics(self.root / _FACTS)

    @cached_property
    def docs(self) -> dict[str, Any]:
        """The words of `docs.toml`."""
        return read_toml(self.root / "docs.toml")

    @cached_property
    def ledger(self) -> tuple[Patch, ...]:
        """The known mistakes of upstream, in `patches.toml`."""
        return patches.load(self.root / "patches.toml")

    def pin(self, revision: str) -> Pin:
        """Return the pin of `revision`; raise `BadInput` with the nearest name when there is none."""
        pins = self.pins
        if revision not in pins:
            raise revisions.unknown(revision, pins)
        return pins[revision]

    def structure(self, revision: str) -> Schema:
        """Return the committed structure of `revision`, before patches."""
        return document.read(self.folder_of(revision) / revision / _SCHEMA)[0]

    def effective(self, revision: str) -> EffectiveSchema:
        """Return the effective schema of `revision`.

        Raises:
            BadInput: The revision is unknown, its files are damaged, or a mistake that it is known to have is gone.
        """
        folder = self.folder_of(revision) / revision
        structure = self.structure(revision)
        with locating(self.root / "patches.toml"):
            patched, applied = patches.apply(structure, self.ledger, revision)
            patched = document.normalise(patched)
        draft = self.pin(revision).status == "draft"
        return EffectiveSchema(
            revision=revision,
            definitions=patched["$defs"],
            digest=canonical.digest(patched),
            semantics=_with_own(self.semantics, folder),
            docs=self.docs if folder.parent == self.root else None,
            file=folder / _SCHEMA,
            draft=draft,
            applied=applied,
            reading=Reading(folder / _SCHEMA, strict=self.strict or not draft),
        )

    def is_pinned(self, revision: str) -> bool:
        """Return whether the committed structure is the one that was imported."""
        return canonical.digest(self.structure(revision)) == self.pin(revision).structure

    def add(
        self,
        revision: str,
        file: Readable,
        *,
        commit: str,
        status: str | None = None,
        changed: date | None = None,
        semantics: Path | None = None,
        prose: bool = False,
        reading: Reading | None = None,
    ) -> Pin:
        """Import an upstream file: writes its structure and pins it. Patches and other revisions are not touched.

        Args:
            revision: What to call it: its date, or any name for a draft.
            file: The file.
            commit: The upstream commit of the file; may be empty.
            status: `released` or `draft`; by default, what has a date for a name is released.
            changed: When upstream last changed it, if not on its date.
            semantics: Facts that only this revision needs, in a file of the form of `semantics.toml`; without it, those
                that were there stay.
            prose: Keep the words of the file, where `docs.toml` has none of ours.
            reading: Decides about what breaks a rule in a draft; by default, and in a release, it is refused.

        Raises:
            BadInput: A file is not usable, the name is not one, or the table of pins is damaged.
        """
        known = status or ("released" if revisions.is_date(revision) else "draft")
        day = revisions.check_name(revision, draft=known == "draft")
        if known == "released" and not commit and not prose:
            raise BadInput("the upstream commit is not known", file=sources.read(file).label, fix="give --commit")
        upstream, sha = document.read(file, reading if known == "draft" else None)
        pin = Pin(
            name=revision,
            era=era(upstream["$defs"]),
            status=known,
            date=(changed or day or date.today()).isoformat(),
            commit=commit,
            sha256=sha,
            structure=canonical.digest(upstream),
        )
        texts = {
            f"{revision}/{_SCHEMA}": canonical.dumps(upstream if prose else canonical.canonical(upstream)),
            _PINS: revisions.revised(self.root / _PINS, pin),
        }
        if semantics is not None:
            read_semantics(semantics)
            texts[f"{revision}/{_FACTS}"] = semantics.read_text("utf-8")
        put(self.root, {name: Change(read(self.root / name), text.encode()) for name, text in texts.items()})
        return pin

    def remove(self, revision: str) -> None:
        """Remove what was imported of a revision into `root`, its patches and facts included.

        Raises:
            BadInput: There is no such revision there, or its files cannot be removed.
        """
        self.pin(revision)
        folder, table = self.root / revision, self.root / _PINS
        files = sorted(path for path in folder.glob("*") if path.is_symlink() or path.is_file())
        gone = {f"{revision}/{path.name}": Change(read(path), None) for path in files}
        rest = Change(read(table), revisions.without(table, revision).encode())
        put(self.root, {**gone, _PINS: rest})
        with suppress(OSError):  # it was gone, or somebody keeps more in it
            folder.rmdir()

    def verify(self, revision: str, file: Readable) -> tuple[bool, list[str]]:
        """Compare an upstream file with what is committed.

        Returns:
            Whether the file is byte for byte the pinned one, and the pointers at which its structure differs.
        """
        upstream, sha = document.read(file)
        ours = canonical.canonical(self.structure(revision))
        return sha == self.pin(revision).sha256, canonical.differences(ours, canonical.canonical(upstream))


def external(
    file: Readable,
    revision: str | None,
    semantics: Mapping[str, Any],
    ledger: Sequence[Patch] = (),
    *,
    strict: bool = False,
) -> EffectiveSchema:
    """Return the effective schema of any file: a draft, a fork, a revision to come. Its own prose documents it.

    Args:
        file: The file.
        revision: What to call its revision; by default what the source is called.
        semantics: The facts about it.
        ledger: The known mistakes; those that are found are corrected.
        strict: Whether what breaks a rule is an error; else it is read all the same, and the protocol model says how.

    Raises:
        BadInput: The file is not a usable schema.
    """
    source = sources.read(file)
    reading = Reading(source.label, strict=strict)
    loaded, applied = patches.apply(document.read(source, reading)[0], ledger)
    if applied:
        with locating(source.label):
            loaded = document.normalise(loaded)
    name = revision if revision is not None else source.revision
    return EffectiveSchema(
        name,
        loaded["$defs"],
        canonical.digest(loaded),
        semantics,
        file=source.label,
        applied=applied,
        draft=not revisions.is_date(name),
        reading=reading,
    )


def _with_own(semantics: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the facts for the revision in `folder`: those that only it has are beside its schema."""
    own = folder / _FACTS
    return merge_semantics(semantics, read_semantics(own)) if own.exists() else semantics
