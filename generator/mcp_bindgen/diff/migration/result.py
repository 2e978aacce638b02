"""What a migration asks of a project."""

from __future__ import annotations

from dataclasses import dataclass

from .changes import Change


@dataclass(frozen=True)
class Place:
    """A place in a file; lines and columns begin with 1, columns count characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Use:
    """A use of something that is gone, renamed or changed, or a handler that runs again.

    Attributes:
        place: Where.
        name: What is used, e.g. `types.Tool`, `types.Tool.annotations`, `types.Tool(annotations=)`, `Client.call_tool`.
        change: What became of it.
        certain: Whether it is clear that it is this that is used.
    """

    place: Place
    name: str
    change: Change
    certain: bool


@dataclass(frozen=True)
class Skipped:
    """A file that could not be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Migration:
    """The changes that a project needs.

    Attributes:
        old: The old revision.
        new: The new one.
        old_package: The import name of the old bindings.
        new_package: That of the new ones.
        uses: What is used and is gone, renamed or changed, in the order of files and lines.
        imports: Where the old bindings are imported.
        files: How many files were read.
        skipped: The files that could not be.
        others: The other bindings of ours that are imported.
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

    @property
    def found(self) -> bool:
        """Whether the old bindings are used anywhere."""
        return bool(self.uses or self.imports)
