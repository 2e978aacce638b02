"""Upgrade a project to another revision: rehearse in a copy, then put the files in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.migration import Migration, migrate
from mcp_bindgen.protocol import build, naming
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.transaction import Changes, put

from ..generated.replacement import Report
from ..project import Project
from .copying import copied, is_generated, python_files
from .import_check import Failure, Interpreter
from .rehearsal import Left, Rehearsal
from .rewrite_imports import rewrite_imports


@dataclass(frozen=True)
class Upgrade:
    """The changes that take a project to another revision, and what they leave to its owner.

    Attributes:
        project: The project as it is.
        old: The revision that is replaced.
        new: The one that takes its place.
        changes: The files that change.
        moved: The owner's files whose imports are moved, with the lines.
        left: The owner's files that keep the old imports.
        broken: The files that could not be imported before: nothing is known about these.
        generated: What became of the generated files, if the project has some.
        migration: What the owner has to change, by what the code uses.
        mentions: Where the old revision is named otherwise, e.g. in the README.
    """

    project: Project
    old: str
    new: str
    changes: Changes
    moved: Mapping[str, tuple[int, ...]]
    left: tuple[Left, ...]
    broken: Mapping[str, Failure]
    generated: Report | None
    migration: Migration
    mentions: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to change by hand."""
        kept = self.generated is not None and not self.generated.complete
        return not (self.left or kept or self.migration.uses)

    def carry_out(self) -> None:
        """Put the changes in place, all or none; raise `BadInput` where that is not possible."""
        put(self.project.folder, self.changes, follow_links=True)


def upgrade(
    folder: Path,
    old: str,
    new: str,
    *,
    interpreter: Interpreter,
    force: bool = False,
    store: Store | None = None,
) -> Upgrade:
    """Find out what an upgrade changes; nothing is written yet.

    The new state is prepared in a copy of the project, whose modules are imported before and after. A file of the
    owner's that could not be imported any more keeps its old imports.

    Args:
        folder: The project.
        old: The revision to replace; one that the project no longer lists is moved in the owner's files only.
        new: The one that takes its place.
        interpreter: The Python that imports.
        force: Move generated files aside that somebody edited.
        store: The `schema/` folder.

    Raises:
        BadInput: There is no project of ours, its contract cannot be used, or it could not be imported afterwards.
    """
    store = store or Store()
    project = Project.read(folder)
    for part in (project.folder / "src", project.source, project.generated):
        if part.is_symlink():
            raise BadInput("is a link to a folder elsewhere", file=part, fix="upgrade the project that it belongs to")
    comparison = compare(build(store.effective(old)), build(store.effective(new)))
    with copied(folder) as copy:
        rehearsal = Rehearsal(project, copy, old, new, interpreter)
        try:
            rehearsal.run(force=force)
        except BadInput as error:  # it is about the copy
            place = error.file.replace(str(copy), str(folder)) if error.file else folder
            raise BadInput(error.message, file=place, pointer=error.pointer, fix=error.fix) from None
        return Upgrade(
            project,
            old,
            new,
            rehearsal.changes(),
            rehearsal.moved,
            tuple(rehearsal.left),
            {file: failure for file, failure in rehearsal.before.items() if failure},
            rehearsal.generated,
            migrate(comparison, folder),
            tuple(rehearsal.mentions()),
        )


def replaced(project: Project, old: str | None, new: str, store: Store) -> str | None:
    """Return the revision that `new` takes the place of: the oldest, unless `old` says which; `None` when all is done.

    Raises:
        BadInput: There is no such revision, or the project does not speak `old`, or it speaks both.
    """
    owned = {name for name in project.revisions if (project.source / naming.package(name)).is_dir()}
    for revision in (new, *([old] if old else []), *project.revisions):
        if revision not in owned:
            store.pin(revision)
    if old == new or (old is None and new in project.revisions):
        return None
    known = ", ".join(project.revisions)
    old = old or project.revisions[0]
    if old in owned:
        package = f"{project.package}.{naming.package(old)}"
        raise BadInput(
            f"{package}, the bindings of MCP {old}, are the project's own",
            file=project.file,
            fix=f"see what to change: mcp-bindgen migrate schema/{old}.json {new} . --package {package}",
        )
    if old in project.revisions and new in project.revisions:
        raise BadInput(
            f"the project speaks both {old} and {new}",
            file=project.file,
            fix=f"to drop {old}, take it out of `revisions` there, and out of your code",
        )
    if old not in project.revisions and new not in project.revisions:
        raise BadInput(f"the project does not speak {old}", file=project.file, fix=f"it speaks {known}")
    return old


def remaining(project: Project, store: Store) -> dict[str, str]:
    """Return the owner's files that use bindings of a revision that the project does not speak -> that revision."""
    found: dict[str, str] = {}
    for path in python_files(project.folder):
        raw = path.read_bytes()
        for revision in sorted(store.pins.keys() - {*project.revisions}):
            if not is_generated(raw) and rewrite_imports(raw, naming.package(revision), "another").lines:
                found[path.relative_to(project.folder).as_posix()] = revision
    return found
