"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(package: str, exports: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of `package`: each name of `exports` comes from the submodule beside it, or is one itself."""

    def get(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{exports[name]}", package)
        value = module if name == exports[name] and not hasattr(module, name) else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
