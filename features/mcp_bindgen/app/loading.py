"""Import of the file or module that a user names, `FILE.py[:NAME]` or `MODULE[:NAME]`, and folders of our data."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


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


def public_functions(module: ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    """Return the functions that a module offers: those in `__all__`, else its own without a leading underscore."""
    members = module.__dict__
    if "__all__" in members:
        return [(name, value) for name in members["__all__"] if inspect.isfunction(value := members.get(name))]
    public = [(name, one) for name, one in members.items() if inspect.isfunction(one) and not name.startswith("_")]
    # the name of a lambda is no identifier
    return [(name, one) for name, one in public if one.__module__ == module.__name__ and one.__name__.isidentifier()]


def read_profile(folder: str, name: str, refusal: Callable[[str], Exception]) -> tuple[Path, dict[str, Any]]:
    """Return the file of a profile, and what it states.

    Args:
        folder: Folder of `schema` with the profiles that come with mcp-bindgen.
        name: Name of one of them, or the path of a TOML file.
        refusal: Makes the error that is raised if there is no such profile, or if it is not TOML.
    """
    known = profile_names(folder)
    if name not in known and not name.endswith(".toml"):
        raise refusal(f"unknown profile {name!r}; use a TOML file or one of {', '.join(known)}")
    file = data_folder(folder) / f"{name}.toml" if name in known else Path(name)
    try:
        return file, tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise refusal(f"{file}: {error.strerror}; name an existing file") from None
    except (ValueError, RecursionError) as error:
        raise refusal(f"{file}: {error}") from None


def profile_names(folder: str) -> list[str]:
    """Return the names of the profiles in a folder of `schema`."""
    return sorted(file.stem for file in data_folder(folder).glob("*.toml"))


def data_folder(name: str) -> Path:
    """Return a folder of `schema` that belongs to this installation: of the checkout, else of the wheel."""
    here = Path(__file__).resolve()
    candidates = (here.parents[3] / "schema" / name, here.parents[1] / "schema" / name)
    return next((one for one in candidates if one.is_dir()), candidates[-1])
