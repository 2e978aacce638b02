"""Import, load and verify the revisions of the `schema/` folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from . import canonical, document, patches, revisions, sources
from . import pointer as json_pointer
from .errors import BadInput, locating
from .json import is_object
from .keywords import Schema, walk
from .patches import Correction, Patch
from .revisions import Pin
from .semantics import read_semantics
from .sources import Readable, Source
from .toml import read_toml
from .transaction import Change, put, read

Origin = Literal["ours", "file"]


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
    """

    revision: str
    definitions: Mapping[str, Schema]
    digest: str
    semantics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    docs: Mapping[str, Any] | None = None
    file: Path | str | None = None
    applied: tuple[Patch, ...] = ()

    @property
    def origin(self) -> Origin:
        """Where its words come from: `docs.toml`, or the file itself."""
        return "file" if self.docs is None else "ours"

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """What was corrected in a file of others; our own revisions are known to need it."""
        applied = self.applied if self.origin == "file" else ()
        return tuple(Correction(str(self.file), patch.pointer, patch.reason) for patch in applied)


def find() -> Path:
    """Return the `schema/` folder that belongs to this installation: of the checkout, else of the wheel."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "schema", here.parents[1] / "schema"):
        if (candidate / "revisions.toml").exists():
            return candidate
    raise BadInput("the schema folder is missing from this installation", fix="reinstall mcp-bindgen")


class Store:
    """A `schema/` folder.

    Args:
        root: The folder; by default the one of this installation.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else find()

    @property
    def pins(self) -> dict[str, Pin]:
        """Revision name -> pin, oldest first."""
        return revisions.load(self.root / "revisions.toml")

    @cached_property
    def semantics(self) -> dict[str, Any]:
        """The facts of `semantics.toml`."""
        return read_semantics(self.root / "semantics.toml")

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
        self.pin(revision)
        return document.read(self.root / revision / "schema.json")[0]

    def effective(self, revision: str) -> EffectiveSchema:
        """Return the effective schema of `revision`.

        Raises:
            BadInput: The revision is unknown, its files are damaged, or a mistake that it is known to have is gone.
        """
        structure = self.structure(revision)
        with locating(self.root / "patches.toml"):
            patched, applied = patches.apply(structure, self.ledger, revision)
            patched = document.normalise(patched)
        return EffectiveSchema(
            revision=revision,
            definitions=patched["$defs"],
            digest=canonical.digest(patched),
            semantics=self.semantics,
            docs=self.docs,
            file=self.root / revision / "schema.json",
            applied=applied,
        )

    def is_pinned(self, revision: str) -> bool:
        """Return whether the committed structure is the one that was imported."""
        return canonical.digest(self.structure(revision)) == self.pin(revision).structure

    def add(self, revision: str, file: Readable, *, commit: str, status: str, changed: date | None = None) -> Pin:
        """Import an upstream file: writes its structure and pins it. Patches and other revisions are not touched.

        Raises:
            BadInput: The file is not a usable schema, `revision` is not a date, or the table of pins is damaged.
        """
        day = _day(revision)
        upstream, sha = document.read(file)
        pin = Pin(
            name=revision,
            era=era(upstream["$defs"]),
            status=status,
            date=(changed or day).isoformat(),
            commit=commit,
            sha256=sha,
            structure=canonical.digest(upstream),
        )
        table = self.root / "revisions.toml"
        revised = revisions.revised(table, pin)
        structure = canonical.dumps(canonical.canonical(upstream))
        texts = {f"{revision}/schema.json": structure, table.name: revised}
        put(self.root, {name: Change(read(self.root / name), text.encode()) for name, text in texts.items()})
        return pin

    def verify(self, revision: str, file: Readable) -> tuple[bool, list[str]]:
        """Compare an upstream file with what is committed.

        Returns:
            Whether the file is byte for byte the pinned one, and the pointers at which its structure differs.
        """
        upstream, sha = document.read(file)
        ours = canonical.canonical(self.structure(revision))
        return sha == self.pin(revision).sha256, differences(ours, canonical.canonical(upstream))


def external(
    file: Readable, revision: str | None, semantics: Mapping[str, Any], ledger: Sequence[Patch] = ()
) -> EffectiveSchema:
    """Return the effective schema of any file: a draft, a fork, a revision to come. Its own prose documents it.

    Args:
        file: The file.
        revision: What to call its revision; by default what the source is called.
        semantics: The facts about it.
        ledger: The known mistakes; those that are found are corrected.

    Raises:
        BadInput: The file is not a usable schema.
    """
    source = sources.read(file)
    loaded, applied = patches.apply(document.read(source)[0], ledger)
    if applied:
        with locating(source.label):
            loaded = document.normalise(loaded)
    name = revision if revision is not None else source.revision
    digest = canonical.digest(loaded)
    return EffectiveSchema(name, loaded["$defs"], digest, semantics, file=source.label, applied=applied)


def named(name: str | Source, store: Store, semantics: Mapping[str, Any] | None = None) -> EffectiveSchema:
    """Return the effective schema of what a command line names: a revision of ours, or a schema file from anywhere.

    Args:
        name: The name of a revision, or of a source.
        store: The `schema/` folder.
        semantics: The facts about schema files; by default those of the folder.

    Raises:
        BadInput: It is neither a revision nor a source that can be read.
    """
    if isinstance(name, Source) or sources.is_source(name, store.pins):
        return external(name, None, store.semantics if semantics is None else semantics, store.ledger)
    return store.effective(name)  # says which revisions there are


def era(definitions: Mapping[str, Schema]) -> str:
    """Return `stateful` when the schema knows the `initialize` handshake, else `stateless`."""
    for definition in definitions.values():
        for _, node in walk(definition):
            if node.get("const") == "initialize":
                return "stateful"
    return "stateless"


def _day(revision: str) -> date:
    """Return the date that a revision is named after, which is also the name of its folder."""
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", revision):
            return date.fromisoformat(revision)
    except ValueError:
        pass
    raise BadInput(f"{revision!r} is not a date", fix="name a revision like 2025-11-25")


def differences(ours: Any, theirs: Any, pointer: str = "") -> list[str]:
    """Return one line for each place at which two JSON documents differ, with the pointer and what stands there."""
    if is_object(ours) and is_object(theirs):
        found: list[str] = []
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            here = json_pointer.join(pointer, name)
            if name not in theirs:
                found.append(f"{here}: gone")
            elif name not in ours:
                found.append(f"{here}: new")
            else:
                found.extend(differences(ours[name], theirs[name], here))
        return found
    if ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool):
        return []
    return [f"{pointer}: {json.dumps(ours)} -> {json.dumps(theirs)}"]
