"""Find the functions that the server of a new project calls, and how its code comes by them."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path

from mcp_bindgen.app.loading import split
from mcp_bindgen.spec import BadInput

from ..functions import functions_of_module

_TAKEN = ("__main__", "app", "contract", "models", "protection", "server")
"""The modules of a project, and the imports of its server's module."""

OTHERWISE = "functions"
"""The name of a module if its own name is taken."""


@dataclass(frozen=True)
class Functions:
    """The functions of a module.

    Attributes:
        names: The functions, which are called like their tools.
        name: The name of the module in the project's code.
        imported: The statement that imports it.
        file: The text of the module, if it becomes part of the project.
        requirement: The distribution that has it, if it is installed and that is known.
    """

    names: frozenset[str]
    name: str
    imported: str
    file: str | None = None
    requirement: str | None = None


def functions_of(words: str) -> Functions:
    """Return the functions of a module: one that is installed, or a file, which is copied.

    Args:
        words: The import name of the module, which is imported, or its file; `:NAME` after it names an `App` in it.

    Raises:
        BadInput: It cannot be imported, or is neither installed nor a file that stands alone.
    """
    found = functions_of_module(words)
    names = frozenset(name for name, function in found if name == function.__name__)
    place = split(words)[0]
    is_file = place.endswith(".py")
    file = Path(place if is_file else f"{place}.py")
    module = file.stem if is_file else place
    package, _, last = module.rpartition(".")
    name = OTHERWISE if last in _TAKEN else last
    top = module.partition(".")[0]
    elsewhere = [one for one in sys.path if Path(one or ".").resolve() != Path.cwd()]
    if not is_file and PathFinder.find_spec(top, elsewhere):
        renamed = "" if name == last else f" as {name}"
        imported = f"from {package} import {last}{renamed}" if package else f"import {last}{renamed}"
        return Functions(names, name, imported, requirement=next(iter(packages_distributions().get(top, [])), None))
    if package or not file.is_file():
        raise BadInput(f"{top} is not installed", fix="install its package here, as in: pip install -e .")
    text = file.read_bytes().decode("utf-8")
    near = [file.with_name(one) for one in sorted(_imports(text))]
    beside = [one.name for one in near if one.is_dir() or one.with_suffix(".py").is_file()]
    if beside:
        raise BadInput(f"imports {beside[0]}, which is beside it", file=file, fix="install a package of both")
    return Functions(names, name, f"from . import {name}", file=text)


def _imports(text: str) -> set[str]:
    """Return the outermost names of the modules that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found - {""}
