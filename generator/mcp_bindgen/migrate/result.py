"""The result of a migration: uses of changed names, and edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mcp_bindgen.spec.transaction import Change as FileChange

Kind = Literal["gone", "renamed", "changed", "needed", "repeated"]

EditKind = Literal["rename", "drop", "keyword", "extra", "mapping", "statement", "rule"]

Span = tuple[int, int, bytes]
"""Start and end in the text of a file, in bytes of UTF-8, and the replacement."""


@dataclass(frozen=True, order=True)
class Place:
    """A place in a file; lines and columns begin with 1, columns count characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Edit:
    """A change of the code at one node of its syntax tree.

    Attributes:
        kind: `rename` a name, `drop` makes a keyword of a call a comment, `keyword` gives a positional argument by
            name, `extra` reads a field from `model_extra`, `mapping` makes a
            constructor a dictionary with the names of the wire, `statement` makes a statement a comment, `rule` follows
            a rule of `bridges.toml`.
        line: Line of the node.
        offset: Its offset in the line, in bytes of UTF-8.
        old: The name that the node has, or the index of the argument.
        new: The new name, the names of the wire separated by spaces, or the mark at the beginning of a comment.
        spans: The replacements of a `rule`.
    """

    kind: EditKind
    line: int
    offset: int
    old: str
    new: str = ""
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Change:
    """The fate of a name, a field, an argument, a handler or a call.

    Attributes:
        kind: Its kind; `needed` is an argument that has become mandatory, `repeated` a function that runs again.
        rule: The rule of the finding behind it.
        subject: The subject of that finding.
        old: The old state in Python, in a few words.
        new: The new state. If it is gone: new members that may take its place, or empty.
        hint: The advice.
        fingerprint: The fingerprint of the finding; empty if the comparison has none for this change.
    """

    kind: Kind
    rule: str
    subject: str
    old: str
    new: str
    hint: str
    fingerprint: str = ""


@dataclass(frozen=True)
class Use:
    """A use of a name that is gone, renamed or changed, or a handler that runs again.

    Attributes:
        place: The place of the name.
        name: The name, e.g. `types.Tool`, `types.Tool.annotations`, `types.Tool(annotations=)`, `Client.call_tool`.
            Empty if the type checker found an error that no single name explains.
        change: The fate of the name.
        edit: The edit that `--write` makes; `None` if a person has to change the code.
    """

    place: Place
    name: str
    change: Change
    edit: Edit | None = None

    @property
    def position(self) -> tuple[Place, str]:
        """The place of the use in the order of a report."""
        return self.place, self.name


@dataclass(frozen=True)
class Skipped:
    """A file that could not be read, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True)
class Migration:
    """The changes that a project needs.

    Attributes:
        old: The old revision.
        new: The new revision.
        old_package: The import name of the old bindings.
        new_package: The import name of the new bindings.
        uses: The uses to change, in the order of files and lines.
        imports: The imports of the old bindings.
        files: Number of files that were read.
        skipped: Files that could not be read.
        others: Other packages of bindings that the code imports.
        edited: File, relative to the folder of the code -> its old and new content, if the edits were carried out.
    """

    old: str
    new: str
    old_package: str
    new_package: str
    uses: tuple[Use, ...]
    imports: tuple[Place, ...]
    files: int
    skipped: tuple[Skipped, ...]
    others: tuple[str, ...] = ()
    edited: Mapping[str, FileChange] = field(default_factory=dict[str, FileChange])

    @property
    def found(self) -> bool:
        """True if the old bindings are used anywhere."""
        return bool(self.uses or self.imports)

    @property
    def moves(self) -> tuple[Place, ...]:
        """The imports to change; none if the new bindings have the same name."""
        return () if self.old_package == self.new_package else self.imports
