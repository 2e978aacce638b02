"""Lazy exports: names of packages are imported at their first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy(package: str, exports: Mapping[str, str], *, module: str | None = None) -> Callable[[str], object]:
    """Make the `__getattr__` of a module.

    Args:
        package: The package of the submodules.
        exports: Name -> its submodule; a submodule maps to itself.
        module: The module that gets the `__getattr__`; by default the package.
    """
    owner = module or package

    def get(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        found = import_module(f".{exports[name]}", package)
        value = found if name == exports[name] else getattr(found, name)
        setattr(sys.modules[owner], name, value)
        return value

    return get


def lazy_modules(
    package: str, modules: Mapping[str, Sequence[str]], *, module: str | None = None
) -> Callable[[str], object]:
    """Make the `__getattr__` of a module from the names of each submodule; `__all__` and `dir()` list these names.

    For type checkers, the module imports the same names `as` themselves under `if TYPE_CHECKING`, as re-exports.

    Args:
        package: The package of the submodules.
        modules: Submodule -> its names; a submodule with a leading dot belongs to the package above.
        module: The module that gets the `__getattr__`; by default the package.
    """
    exports = {name: submodule for submodule, names in modules.items() for name in names}
    public = sorted(exports)
    sys.modules[module or package].__dict__.update(__all__=public, __dir__=public.copy)
    return lazy(package, exports, module=module)
