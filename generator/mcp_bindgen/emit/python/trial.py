"""Import a generated package before it replaces an older one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module, invalidate_caches
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from mcp_bindgen.spec import BadInput

_PACKAGE = "mcp_bindgen_trial"


def try_import(files: Mapping[str, str], templates: Path | None = None) -> None:
    """Import the modules of a package from a scratch folder, and build the validators of its types and messages.

    Args:
        files: File name -> text.
        templates: The folder of the user's templates that made some of them.

    Raises:
        BadInput: Something cannot be imported or built.
    """
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    with TemporaryDirectory(prefix="mcp-bindgen.") as scratch:
        folder = Path(scratch, _PACKAGE)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        sys.path.insert(0, scratch)
        invalidate_caches()
        try:
            import_module(_PACKAGE)
            for name in sorted(name for name in files if name.endswith(".py") and name != "__init__.py"):
                _build(import_module(f"{_PACKAGE}.{name.removesuffix('.py')}"))
        except (Exception, SystemExit) as error:  # an import may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(
                f"the bindings cannot be used: {reason[:300]}",
                file=templates,
                fix="nothing was written; change the schema there, and report this"
                if templates is None
                else "nothing was written; correct the templates, or put the packages that they import into PYTHONPATH",
            ) from None
        finally:
            sys.path.remove(scratch)
            sys.dont_write_bytecode = compiles
            for module in [module for module in sys.modules if module.partition(".")[0] == _PACKAGE]:
                del sys.modules[module]


def _build(module: ModuleType) -> None:
    """Build the validators that a module defers to their first use."""
    import pydantic  # takes time to load; a local name in capitals could hide a definition from pydantic

    members = vars(module)
    if types := tuple(getattr(module, name) for name in members.get("__all__", ())):
        pydantic.TypeAdapter(tuple[types]).rebuild(raise_errors=True)  # type: ignore[valid-type]
    if module.__name__ == f"{_PACKAGE}.dispatcher":
        for side in ("SERVER", "CLIENT"):
            routes: dict[str, Any] | tuple[Any, ...] = members[side].routes  # by name; of an extension a tuple
            assert all(route.read_message for route in (routes.values() if isinstance(routes, dict) else routes))
