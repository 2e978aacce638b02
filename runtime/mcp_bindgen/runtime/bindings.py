"""Find the bindings that are installed."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from types import ModuleType

_PACKAGE = re.compile(r"v\d+(_\w+)+")


def namespace() -> ModuleType:
    """Return the package that all bindings are in."""
    return import_module(__name__.partition(".")[0])


def installed() -> list[ModuleType]:
    """Return the bindings of all revisions that are installed; what is in the user's folder is not among them."""
    home = namespace()
    names = [found.name for found in pkgutil.iter_modules(home.__path__) if _PACKAGE.fullmatch(found.name)]
    return [import_module(f"{home.__name__}.{name}") for name in names]


def extension_of(package: ModuleType, name: str) -> ModuleType | None:
    """Return the bindings of an extension of a revision, by the name of their module; `None` if there are none."""
    whole = f"{package.__name__}.extensions.{name}"
    try:
        return import_module(whole)
    except ModuleNotFoundError as error:
        if error.name is None or not whole.startswith(error.name):
            raise  # it is there, and something that it needs is not
        return None
