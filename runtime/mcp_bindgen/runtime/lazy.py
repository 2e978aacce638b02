"""Lazy exports: names of packages are imported at their first use (PEP 562); checks of optional packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_EXPORT = re.compile(r"^from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def lazy(
    package: str, exports: Mapping[str, str], *, module: str | None = None, extra: str = ""
) -> Callable[[str], object]:
    """Make the `__getattr__` of a module.

    Args:
        package: The package of the submodules.
        exports: Name -> its submodule; a submodule maps to itself.
        module: The module that gets the `__getattr__`; by default the package.
        extra: The extra that the package needs, for the error if an import fails.
    """
    owner = module or package

    def get(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        try:
            found = import_module(f".{exports[name]}", package)
        except ModuleNotFoundError as error:
            from .extras import NotInstalled  # only needed here

            raise NotInstalled.of(error, f"{owner}.{name}", extra) from None
        value = found if name == exports[name] else getattr(found, name)
        setattr(sys.modules[owner], name, value)
        return value

    return get


def require(purpose: str, *modules: str, extra: str) -> None:
    """Check that modules are installed, without an import of them.

    Args:
        purpose: The feature that needs them.
        modules: Their import names.
        extra: The extra of the feature.

    Raises:
        NotInstalled: A module is missing; the message names the extra.
    """
    for module in modules:
        if find_spec(module) is None:
            from .extras import NotInstalled

            raise NotInstalled(purpose, module, extra)


def lazy_stub(module: str, *, extra: str | None = None) -> Callable[[str], object]:
    """Make the `__getattr__` of a module from its stub, a `.pyi` file; `__all__` and `dir()` list the same names.

    Type checkers read that file, too. Each line is `from .submodule import Name as Name`, or names a package beside it.
    If an import needs a package that is missing, the error names `extra`, by default the one of the module's own name.
    """
    owner = sys.modules[module]
    package = str(owner.__package__)
    above = package.rpartition(".")[0]
    stub = Path(str(owner.__file__)).with_suffix(".pyi").read_text("utf-8")
    exports = {name: one.removeprefix("." if one[0] == "." else above) for one, name in _EXPORT.findall(stub)}
    public = sorted(exports)
    owner.__dict__.update(__all__=public, __dir__=public.copy)
    return lazy(package, exports, module=module, extra=module.rpartition(".")[2] if extra is None else extra)
