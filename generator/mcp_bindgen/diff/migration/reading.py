"""Reads a project: has it checked as a whole, then finds the uses in each module."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from mypy.errors import CompileError
from mypy.modulefinder import BuildSource

from mcp_bindgen.spec import BadInput

from .changes import Changes
from .project import Module, named
from .repeats import Repeats
from .result import Place, Use
from .stubs import stubs
from .typecheck import TypedCode
from .uses import Uses

_FIRST_LINE = 20_000
"""Code is numbered from here on, so that its lines are not those of any stub."""


@dataclass
class Reading:
    """The uses of the bindings in a project.

    Attributes:
        uses: What is gone, renamed or changed, in the order of files and lines.
        imports: Where the old bindings are imported.
        files: How many files were read.
        skipped: The files that the type checker cannot go past, and why.
    """

    uses: list[Use] = field(default_factory=list[Use])
    imports: list[Place] = field(default_factory=list[Place])
    files: int = 0
    skipped: dict[str, str] = field(default_factory=dict[str, str])


def find_uses(modules: list[Module], root: Path, package: str, changes: Changes) -> Reading:
    """Find the uses of a package of bindings in modules below `root`."""
    names = named(modules, root)
    bindings = _bindings(package, names, changes)
    sources = [BuildSource(f"<{name}>/{file}.pyi", name, text) for name, (file, text) in bindings.items()]
    own: dict[int, tuple[str, int]] = {}
    line = _FIRST_LINE
    for name, module in names.items():
        if name not in bindings:
            own.setdefault(id(module), (name, line))
            text = "\n" * line + b"".join(module.lines).decode()
            sources.append(BuildSource(f"<{name}>/{module.path.name}", name, text))
            line += len(module.lines)
    try:
        types = TypedCode(package, sources)
    except CompileError as error:
        where, _, reason = error.messages[0].partition(": error: ")
        broken = names.get(where.partition(">")[0].removeprefix("<"))
        if broken is None:
            raise BadInput(f"it cannot be type-checked: {error.messages[0]}", file=root) from None
        found = find_uses([one for one in modules if one is not broken], root, package, changes)
        found.skipped[str(broken.path)] = f"is not Python: {reason}"
        return found
    found, repeats = Reading(files=len(modules)), Repeats(types, changes)
    for module in modules:
        name, offset = own[id(module)]
        ast.increment_lineno(module.tree, offset)
        reader = Uses(module, name, package, types, changes, offset)
        found.uses += reader.all()
        found.imports += reader.imports
        repeats.read(module, name, offset)
    order = {str(module.path): index for index, module in enumerate(modules)}
    found.uses += repeats.uses()
    found.uses.sort(key=lambda use: (order[use.place.file], use.place.line, use.place.column))
    return found


def _bindings(package: str, names: dict[str, Module], changes: Changes) -> dict[str, tuple[str, str]]:
    """The modules of the bindings and the packages around them: what their files are called, and their text."""
    parts = package.split(".")
    above = {".".join(parts[:count]): ("__init__", "") for count in range(1, len(parts))}
    found = {name: one for name, one in above.items() if name not in names}
    for name, text in stubs(changes.old).items():
        found[f"{package}.{name}" if name else package] = name or "__init__", text
    return found
