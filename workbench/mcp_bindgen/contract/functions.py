"""Derive contracts from modules: one tool for each public function.

The runtime describes each function, as it does for functions of an `App`.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from mcp_bindgen.app import App, BadFunction, loading, public_functions, tool_entry
from mcp_bindgen.app.loading import import_file, split
from mcp_bindgen.spec import BadInput


def document_of_module(words: str, path: Path | None = None) -> dict[str, Any]:
    """Return the contract document of a module: the document of its `App`, or one with a tool for each function.

    Args:
        words: The import name of a module, or the path of its file; `:NAME` after it names one of several apps.
        path: Folder to import from; by default the current folder.

    Raises:
        BadInput: The module cannot be imported, has no public function, or has a function that a contract cannot
            describe; with file, line and fix.
    """
    document = document_of_app(words, path)
    if document is not None:
        return document
    return {"tools": [tool_of(function, wire) for wire, function in functions_of_module(words, path)]}


def functions_of_module(words: str, path: Path | None = None) -> list[tuple[str, Callable[..., Any]]]:
    """Return name -> public function of a module, only tools if it has an `App`; raise `BadInput` if there are none."""
    module, document = module_of(words, path), document_of_app(words, path)
    tools = None if document is None else {tool["name"] for tool in document.get("tools", ())}
    functions = [(name, one) for name, one in public_functions(module) if tools is None or name in tools]
    if not functions:
        raise BadInput(
            f"the module {split(words)[0]!r} has no public function",
            file=module.__file__,
            fix="write one, or list it in __all__",
        )
    return functions


def document_of_app(words: str, path: Path | None = None) -> dict[str, Any] | None:
    """Return the contract document of the `App` in a module; `None` if no name is given and the module has no `App`.

    Args:
        words: See `document_of_module`.
        path: See `document_of_module`.

    Raises:
        BadInput: The module cannot be imported, or does not have the app.
    """
    module, (place, name) = module_of(words, path), split(words)
    found = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if name:
        found = {key: value for key, value in found.items() if key == name} or found
    elif not found:
        return None
    if len({id(app) for app in found.values()}) != 1 or (name and name not in found):
        fix = f"say {Path(place).name}:NAME, with one of {', '.join(found)}" if found else 'write app = App("name")'
        raise BadInput(f"there is no App {name!r}" if name else "there is not one App", file=module.__file__, fix=fix)
    return next(iter(found.values())).document


def module_of(words: str, path: Path | None = None) -> ModuleType:
    """Return the module that words name, imported from `path`, or from the folder of its file; raise `BadInput`."""
    place = split(words)[0]
    file = Path(place)
    if file.suffix == ".py":
        return _imported(file.stem, file.parent, file)
    return _imported(place, path or Path())


def tool_of(function: Callable[..., Any], name: str = "") -> dict[str, Any]:
    """Return the entry of `tools/list` for a function; raise `BadInput` if a contract cannot describe it.

    Args:
        function: The function, `def` or `async def`.
        name: Name of the tool; by default the name of the function.
    """
    try:
        return tool_entry(function, name)
    except BadFunction as error:
        raise BadInput(error.problem, file=error.place, fix=error.fix) from None


# --- finding functions ----------------------------------------------------------------------------------------


def _imported(name: str, path: Path, file: Path | None = None) -> ModuleType:
    """Return the module. Its output goes to stderr, because stdout may be for the contract."""
    if not path.is_dir():
        raise BadInput(f"{path} is no folder", fix="give --path the folder that the module is in")
    folder = str(path.resolve())
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            return import_file(file) if file is not None and file.is_file() else importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the module may raise anything, including SystemExit
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise BadInput(f"there is no module {missing!r} in {path}", fix="see --path") from None
        raise _unimportable(name, error) from None
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _unimportable(name: str, error: BaseException) -> BadInput:
    """Return the reason of a failed import, with the line of the module that failed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    if isinstance(error, SyntaxError) and error.filename:
        return BadInput(f"{name} is no Python: {error.msg}", file=f"{error.filename}:{error.lineno}")
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    return BadInput(f"importing {name} failed: {words}", file=place)


def _is_theirs(file: str) -> bool:
    ours = (__file__, loading.__file__)
    return not file.startswith("<") and file not in ours and Path(importlib.__file__).parent not in Path(file).parents
