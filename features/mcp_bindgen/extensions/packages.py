"""Generated packages of extensions."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def extension_of(package: ModuleType, name: str) -> ModuleType | None:
    """Return the bindings of an extension of a revision by the name of their module; `None` if there are none."""
    whole = f"{package.__name__}.extensions.{name}"
    try:
        return import_module(whole)
    except ModuleNotFoundError as error:
        if error.name is None or not whole.startswith(error.name):
            raise  # the module exists, and one of its imports does not
        return None
