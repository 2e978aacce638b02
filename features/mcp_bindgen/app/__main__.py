"""Serve the `App` of a file or module: `python -m mcp_bindgen.app FILE.py[:NAME] | MODULE[:NAME] [options of run]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from mcp_bindgen.runtime.logs import harmless

from .app import App, run
from .loading import import_file, split

_USAGE = "usage: python -m mcp_bindgen.app FILE.py[:NAME] | MODULE[:NAME] [--http HOST:PORT]"


def main() -> None:
    """Import the module that the first argument names, and serve its `App`, or else its public functions.

    Raises:
        SystemExit: There is no such file or module, or no `App` of that name; with a message.
    """
    if len(sys.argv) < 2:
        raise SystemExit(_USAGE)
    place, name = split(sys.argv.pop(1))
    module = _of_file(Path(place)) if place.endswith(".py") else _of_name(place)
    known = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if name and name not in known:
        raise SystemExit(f"{place} has no App {harmless(name)!r}; it has {', '.join(known) or 'none'}")
    run(known[name] if name else module)


def _of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SystemExit(f"there is no file {path}")
    sys.path[0] = str(path.parent.resolve())
    return import_file(path)


def _of_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise SystemExit(f"there is no module {error.name!r}; run this in its folder, or install it") from None


if __name__ == "__main__":
    main()
