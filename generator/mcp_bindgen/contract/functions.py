"""Derive a contract from the functions of a module: one tool for each that is public.

The runtime describes each function, as it does for those that are served without a contract's file.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from mcp_bindgen.app import App, BadFunction, public_functions, tool_entry
from mcp_bindgen.spec import BadInput

_APP = re.compile(r"[^:]+\.py(:[A-Za-z_]\w*)?|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NAMED = re.compile(r":[A-Za-z_]\w*$")


def document_of_module(name: str, path: Path | None = None) -> dict[str, Any]:
    """Return the contract document of a module.

    Args:
        name: Its import name.
        path: The folder to import it from; by default the current one.

    Raises:
        BadInput: It cannot be imported, has no public function, or one that no contract can describe; the error names
            file, line and what to do.
    """
    return {"tools": [tool_of(function, wire) for wire, function in functions_of_module(name, path)]}


def functions_of_module(name: str, path: Path | None = None) -> list[tuple[str, Callable[..., Any]]]:
    """Return the public functions of a module, with their names; raise `BadInput` if there are none."""
    module = _imported(name, path or Path())
    functions = public_functions(module)
    if not functions:
        raise BadInput(
            f"the module {name!r} has no public function", file=module.__file__, fix="write one, or list it in __all__"
        )
    return functions


def is_app(source: str) -> bool:
    """Return whether words name an `App`: FILE.py, FILE.py:NAME or PKG.MODULE:NAME; several are a command."""
    return _APP.fullmatch(source) is not None and (" " not in source or Path(_NAMED.sub("", source)).is_file())


def document_of_app(source: str) -> dict[str, Any]:
    """Return the contract document of an `App` that a module makes.

    Args:
        source: FILE.py or FILE.py:NAME, or PKG.MODULE:NAME, which is imported from the current folder.

    Raises:
        BadInput: It cannot be imported, or has no such app.
    """
    place, _, name = source.rpartition(":") if _NAMED.search(source) else (source, "", "")
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise BadInput("there is no such file", file=path, fix="give the path of a module")
        module = _imported(path.stem, path.parent)
    else:
        module = _imported(place, Path())
    found = {key: value for key, value in vars(module).items() if isinstance(value, App) and name in ("", key)}
    if len({id(app) for app in found.values()}) != 1:
        known = ", ".join(key for key, value in vars(module).items() if isinstance(value, App))
        fix = f"say {place}:NAME, with one of {known}" if known else 'write app = App("name")'
        raise BadInput(f"there is no App {name!r}" if name else "there is not one App", file=module.__file__, fix=fix)
    return next(iter(found.values())).document


def tool_of(function: Callable[..., Any], name: str = "") -> dict[str, Any]:
    """Return the entry of `tools/list` for a function; raise `BadInput` when there can be none.

    Args:
        function: The function, `def` or `async def`.
        name: What the tool is called; by default like the function.
    """
    try:
        return tool_entry(function, name)
    except BadFunction as error:
        raise BadInput(error.problem, file=error.place, fix=error.fix) from None


# --- finding functions ----------------------------------------------------------------------------------------


def _imported(name: str, path: Path) -> ModuleType:
    """Return the module; what it prints goes to stderr, as stdout may be for the contract."""
    if not path.is_dir():
        raise BadInput(f"{path} is no folder", fix="give --path the folder that the module is in")
    folder = str(path.resolve())
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadInput(f"there is no module {error.name!r} in {path}", fix="see --path") from None
        raise _unimportable(name, error) from None
    except BaseException as error:  # whatever somebody's module does, `sys.exit` included
        raise _unimportable(name, error) from None
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _unimportable(name: str, error: BaseException) -> BadInput:
    """Describe why a module cannot be imported, with the last of its lines that ran."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    if isinstance(error, SyntaxError) and error.filename:
        return BadInput(f"{name} is no Python: {error.msg}", file=f"{error.filename}:{error.lineno}")
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    return BadInput(f"importing {name} failed: {words}", file=place)


def _is_theirs(file: str) -> bool:
    return not file.startswith("<") and file != __file__ and Path(importlib.__file__).parent not in Path(file).parents
