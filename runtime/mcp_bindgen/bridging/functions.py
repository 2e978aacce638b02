"""Functions of the user that rules name as `package.module:function`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import iscoroutinefunction, signature
from runpy import run_path
from typing import Any

from mcp_bindgen.user_bindings import home, unsafe

from .chain import RuleContext

_FIX = "write def function(value: Json, context: RuleContext) -> Json in a module beside bridges.toml, or on sys.path"


def user_function(name: str) -> Callable[[Any, RuleContext], Any]:
    """Return a function, `package.module:function`; a module beside the user's `bridges.toml` comes first.

    Raises:
        ImportError: There is no such function, or it does not take a value and a context. The message has the fix.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[Any, RuleContext], Any] = _members(module)[attribute]
        signature(found).bind(None, None)
        if iscoroutinefunction(found):
            raise TypeError("it is asynchronous")
    except (Exception, SystemExit) as error:
        problem = f"the function {name} of a rule cannot be used ({type(error).__name__}: {error})"
        raise ImportError(f"{problem}; {_FIX}", name=module) from error
    return found


def _members(module: str) -> dict[str, Any]:
    folder = home()
    if folder is not None and (file := folder / "schema" / f"{module}.py").is_file():
        if objection := unsafe(file, closed=folder):
            raise ImportError(objection)
        return run_path(str(file), run_name=module)  # it is no module of `sys.path`, and hides none
    return import_module(module).__dict__
