"""Import names of packages when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy(package: str, exports: Mapping[str, str], *, module: str | None = None) -> Callable[[str], object]:
    """Make the `__getattr__` of a module.

    Args:
        package: The package whose submodules are imported.
        exports: Name -> the submodule that has it, or that it is itself.
        module: The module whose `__getattr__` this is; by default the package.
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

    For type checkers, the module imports the same names under `if TYPE_CHECKING`, each `as` itself: a re-export.

    Args:
        package: The package whose submodules are imported.
        modules: Submodule -> its names; a submodule with a leading dot belongs to the package above.
        module: The module whose `__getattr__` this is; by default the package.
    """
    exports = {name: submodule for submodule, names in modules.items() for name in names}
    public = sorted(exports)
    sys.modules[module or package].__dict__.update(__all__=public, __dir__=public.copy)
    return lazy(package, exports, module=module)
