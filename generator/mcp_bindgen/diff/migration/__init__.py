"""What has to change in somebody's code when the bindings are of another revision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.protocol import naming

from ..finding import Comparison
from .effect import Effect
from .pair import Pair
from .project import Project, Skipped
from .uses import Place, Rules, Use

NAMESPACE = "mcp_bindgen"


@dataclass(frozen=True)
class Migration:
    """What has to change in a project.

    Attributes:
        old: The old revision.
        new: The new one.
        old_package: The import name of the old bindings.
        new_package: That of the new ones.
        uses: What is used and is gone, renamed or changed, in the order of files and lines.
        imports: Where the old bindings are imported.
        files: How many files were read.
        skipped: The files that could not be.
    """

    old: str
    new: str
    old_package: str
    new_package: str
    uses: tuple[Use, ...]
    imports: tuple[Place, ...]
    files: int
    skipped: tuple[Skipped, ...]


def migrate(comparison: Comparison, path: Path, *, package: str | None = None) -> Migration:
    """Reads somebody's code; nothing is written.

    Args:
        comparison: The revision of the bindings that the code uses, compared with the one that it is to use.
        path: A folder of Python code, or one file.
        package: The import name of the bindings that it uses, where they are not ours.

    Raises:
        BadInput: There is nothing at `path`.
    """
    old, new = comparison.old.revision, comparison.new.revision
    package = package or f"{NAMESPACE}.{naming.package(old)}"
    above = package.rpartition(".")[0] or package
    found = Project(Rules(Pair(comparison)), package, path).read()
    return Migration(
        old,
        new,
        package,
        f"{above}.{naming.package(new)}",
        found.uses,
        found.imports,
        found.files,
        found.skipped,
    )


__all__ = ["Effect", "Migration", "Place", "Skipped", "Use", "migrate"]
