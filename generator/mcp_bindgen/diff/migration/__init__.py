"""What has to change in somebody's code when the bindings are of another revision.

Read the code (`project`), let a type checker say what its expressions are (`typecheck`, with the old bindings as
`stubs`), find what they use (`reading`, `uses`), and say what became of that (`changes`) and why (`causes`).
"""

from __future__ import annotations

import re
from pathlib import Path

from mcp_bindgen.protocol import naming
from mcp_bindgen.spec import BadInput

from ..finding import Comparison
from .changes import Change, Changes
from .project import Module, python_files, read
from .result import Migration, Place, Skipped, Use

NAMESPACE = "mcp_bindgen"

_BINDINGS = re.compile(rf"{NAMESPACE}\.v\d\w*")


def migrate(comparison: Comparison, path: Path, *, package: str | None = None) -> Migration:
    """Read somebody's code; nothing is written.

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
    files = {file: read(file) for file in python_files(path)}
    try:
        from .reading import find_uses  # a type checker takes a while to import
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        raise BadInput(f"{missing} is not installed", fix="run: pip install 'mcp-bindgen[generate]'") from None
    modules = [one for one in files.values() if isinstance(one, Module)]
    found = find_uses(modules, path, package, Changes(comparison))
    unread = {str(file): reason for file, reason in files.items() if isinstance(reason, str)} | found.skipped
    return Migration(
        old,
        new,
        package,
        f"{above}.{naming.package(new)}",
        tuple(found.uses),
        tuple(found.imports),
        found.files,
        tuple(Skipped(*one) for one in sorted(unread.items())),
        tuple(sorted({name for module in modules for name in module.imported("") if _BINDINGS.fullmatch(name)})),
    )


__all__ = ["Change", "Migration", "Place", "Skipped", "Use", "migrate"]
