"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy(package: str, exports: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of `package`: each name of `exports` comes from the submodule beside it, or is one."""

    def get(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{exports[name]}", package)
        value = module if name == exports[name] and not hasattr(module, name) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def lazy_modules(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of `package`, given the names of each submodule, and set its `__all__` to all of them.

    For type checkers, the package imports the same names under `if TYPE_CHECKING`, each `as` itself: a re-export.
    """
    exports = {name: module for module, names in modules.items() for name in names}
    vars(sys.modules[package])["__all__"] = sorted(exports)
    return lazy(package, exports)
