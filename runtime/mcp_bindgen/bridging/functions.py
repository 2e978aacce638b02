"""Functions of the user that rules name as `package.module:function`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import iscoroutinefunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from mcp_bindgen.runtime.bindings import home, unsafe

from .chain import PACKAGE, RuleContext

_FIX = "write def function(value: Json, context: RuleContext) -> Json in a module beside bridges.toml, or on sys.path"


def user_function(name: str) -> Callable[[Any, RuleContext], Any]:
    """Return a function, `package.module:function`; a module beside the user's `bridges.toml` comes first.

    Raises:
        ImportError: There is no such function, or it does not take a value and a context. The message has the fix.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(_module(module), attribute)
        signature(found).bind(None, None)
        if iscoroutinefunction(found):
            raise TypeError("it is asynchronous")
    except (Exception, SystemExit) as error:
        problem = f"the function {name} of a rule cannot be used ({type(error).__name__}: {error})"
        raise ImportError(f"{problem}; {_FIX}", name=module) from error
    return found  # type: ignore[no-any-return]


def _module(name: str) -> ModuleType:
    folder = home()
    file = folder / "schema" / f"{name}.py" if folder is not None else None
    if folder is None or file is None or not file.is_file():
        return import_module(name)
    if objection := unsafe(file, closed=folder):
        raise ImportError(objection)
    return _loaded(f"{PACKAGE}.rules_{name}", file, file.stat().st_mtime_ns)


@cache
def _loaded(name: str, file: Path, changed_ns: int) -> ModuleType:
    """Return the module of a file; the name keeps it apart from modules of `sys.path`."""
    spec: Any = spec_from_file_location(name, file)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
