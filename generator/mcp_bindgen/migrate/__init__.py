"""Take Python code from the bindings of one revision to the bindings of another.

`analysis` finds the places to change with a type checker, `changes` explains them, `edits` and `imports` rewrite
the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import resolve_name
from pathlib import Path
from secrets import token_hex

from mcp_bindgen.conversion.rules import Rules
from mcp_bindgen.diff.finding import Comparison
from mcp_bindgen.emit.header import command_of, is_generated
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.installation import NAMESPACE
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import Change as FileChange

from .analysis import Analysis
from .edits import edited, marked
from .files import Module, parse, python_files
from .imports import rewrite_imports
from .result import Change, Edit, Migration, Place, Skipped, Use

_BINDINGS = re.compile(rf"{NAMESPACE}\.v\d\w*")
_TOKEN = token_hex(8)
_MARKED = re.compile(rf"#{_TOKEN}(\d+);".encode())
"""The mark of a comment of removed code while edits go on, with the index of its use."""

_HINT = "Its code is a comment here: delete it, or move the code to another place."
_MAX_ROUNDS = 6
"""Maximum number of times that edited code is checked again; a rename of an import leads to renames of its uses."""


def migrate(
    comparison: Comparison,
    path: Path,
    *,
    package: str | None = None,
    rewrite: bool = False,
    without: Path | None = None,
    target: str | None = None,
    rules: Rules | None = None,
) -> Migration:
    """Return the changes that Python code needs; nothing is written.

    Args:
        comparison: The revision of the bindings that the code uses, compared with the new one.
        path: A folder of Python code, or one file.
        package: The import name of the bindings, if they are not ours.
        without: A folder of generated files, which are not reported.
        target: The import name of the new bindings, if they are not beside the old ones.
        rules: The rules of `bridges.toml` for the step; uses are rewritten by them.
        rewrite: Carry out the edits. `Migration.edited` has the new files, and `uses` lists the rest.

    Raises:
        BadInput: `path` does not exist or is a file that is not Python, or mypy is not installed.
    """
    old, new = comparison.old.revision, comparison.new.revision
    package = package or f"{NAMESPACE}.{naming.package(old)}"
    above = package.rpartition(".")[0] or package
    modules: dict[Path, Module] = {}
    context: dict[Path, bytes] = {}
    skipped: dict[Path, str] = {}
    for file in python_files(path):
        if file.is_symlink() and path.resolve() in file.resolve().parents:
            continue
        try:
            raw = file.read_bytes()
        except OSError as error:
            skipped[file] = f"cannot be read ({error.strerror})"
            continue
        found = parse(file, raw)
        if is_generated(raw) or file.is_symlink():
            context[file] = raw
            if rewrite and package.encode() in raw and without not in file.parents:
                again = f"is generated; regenerate with: {command_of(raw.decode(errors='replace'))}"
                skipped[file] = again if is_generated(raw) else "is a link to a file elsewhere"
        elif isinstance(found, Module):
            modules[file] = found
        elif file == path:
            raise BadInput(found, file=file, fix="give the path of Python code")
        else:
            skipped[file] = found
    analysis = Analysis(comparison, path, package, rules or {})
    originals = dict(modules)
    result = analysis.find(modules, context)
    removed: list[Use] = []
    for _ in range(_MAX_ROUNDS if rewrite else 0):
        changed = dict(_edited(modules, result.uses, removed))
        if not changed:
            break
        modules |= changed
        result = analysis.find(modules, context)
    left = sorted([*result.uses, *_removed(modules, removed)], key=lambda use: use.position)
    modules = {file: replace(module, raw=_MARKED.sub(b"#", module.raw)) for file, module in modules.items()}
    for file, module in modules.items() if rewrite else ():
        modules[file] = replace(module, raw=marked(module, [use for use in left if use.place.file == str(file)]))
    skipped |= result.blocked
    names = {file: _module_name(file, path) for file in originals}
    imports = {file: list(_imports(module, names[file])) for file, module in originals.items()}
    migration = Migration(
        old,
        new,
        package,
        target or f"{above}.{naming.package(new)}",
        tuple(left),
        tuple(place for found in imports.values() for place, name in found if f"{name}.".startswith(f"{package}.")),
        len(modules),
        tuple(Skipped(str(file), reason) for file, reason in sorted(skipped.items())),
        tuple(sorted({name for found in imports.values() for _, name in found if _BINDINGS.fullmatch(name)})),
    )
    return _rewritten(migration, originals, modules, path) if rewrite else migration


def _edited(modules: Mapping[Path, Module], uses: Iterable[Use], removed: list[Use]) -> Iterator[tuple[Path, Module]]:
    """Carry out the edits, and yield the modules that change; the uses whose code goes are added to `removed`."""
    for file, module in modules.items():
        edits: list[Edit] = []
        for use in uses:
            if use.edit is not None and use.place.file == str(file):
                edits.append(use.edit)
                if use.edit.kind in ("drop", "statement"):
                    edits[-1] = replace(use.edit, new=f"#{_TOKEN}{len(removed)};")
                    removed.append(use)
        after = parse(file, edited(module, edits)) if edits else None
        if isinstance(after, Module) and after.raw != module.raw:
            yield file, after


def _removed(modules: Mapping[Path, Module], removed: Sequence[Use]) -> Iterator[Use]:
    """Yield the uses whose code is a comment now, at the places of these comments."""
    for module in modules.values():
        for number, line in enumerate(module.lines, 1):
            for mark in _MARKED.finditer(line):
                use = removed[int(mark[1])]
                change = replace(use.change, hint=f"{use.change.hint} {_HINT}")
                yield replace(use, place=module.place(number, mark.start()), change=change, edit=None)


def _rewritten(
    migration: Migration, originals: Mapping[Path, Module], modules: Mapping[Path, Module], root: Path
) -> Migration:
    """Return the migration with the new content of the files, which import the new bindings."""
    (above, _, old), (namespace, _, new) = (
        name.rpartition(".") for name in (migration.old_package, migration.new_package)
    )
    own = _own(modules, root, old)
    files: dict[str, FileChange] = {}
    left: list[Skipped] = []
    for file, module in modules.items():
        raw = module.raw
        if above == NAMESPACE:
            moved = rewrite_imports(raw, old, new, own, namespace)
            raw = moved.raw
            left += [Skipped(str(file), moved.problem)] if moved.problem else []
        if raw != originals[file].raw:
            files[file.relative_to(root if root.is_dir() else root.parent).as_posix()] = FileChange(
                originals[file].raw, raw
            )
    return replace(migration, edited=files, skipped=(*migration.skipped, *left))


def _own(modules: Mapping[Path, Module], root: Path, package: str) -> frozenset[str]:
    """Return the top-level names of the project; an empty set if a module is called like the old package."""
    names = [_module_name(file, root).split(".") for file in modules]
    return frozenset() if any(package in parts for parts in names) else frozenset(parts[0] for parts in names)


def _module_name(file: Path, root: Path) -> str:
    """Return the absolute name of a module below `root`, or below its `src/`."""
    parts = file.relative_to(root if root.is_dir() else root.parent).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    return ".".join(parts)


def _imports(module: Module, name: str) -> Iterator[tuple[Place, str]]:
    """Return the absolute names that a module imports, and their places."""
    package = name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((module.place_of(alias), alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:
                continue
            place = module.place(node.lineno, node.col_offset)
            yield place, base
            yield from ((place, f"{base}.{alias.name}") for alias in node.names if base == NAMESPACE)


__all__ = ["Change", "Edit", "Migration", "Place", "Skipped", "Use", "migrate"]
