"""Import of the file or module that a user names, `FILE.py[:NAME]` or `MODULE[:NAME]`, and folders of our data."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def split(words: str) -> tuple[str, str]:
    """Return the file or module that words name, and the name of the `App` in it, which may be empty."""
    place, _, name = words.rpartition(":")
    return (place, name) if place and name.isidentifier() else (words, "")


def import_file(path: Path) -> ModuleType:
    """Return the module of a file, imported once; other modules may have the name of the file.

    Raises:
        Exception: What the module raises.
    """
    place, name = str(path.resolve()), path.stem
    while name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) == place:
            return sys.modules[name]
        name += "_"
    spec = spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:  # as `import` does: no half of a module stays, and the error passes on
        del sys.modules[name]
        raise
    return module


def data_folder(name: str) -> Path:
    """Return a folder of `schema` that belongs to this installation: of the checkout, else of the wheel."""
    here = Path(__file__).resolve()
    candidates = (here.parents[3] / "schema" / name, here.parents[1] / "schema" / name)
    return next((one for one in candidates if one.is_dir()), candidates[-1])
