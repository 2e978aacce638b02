"""Bindings that `mcp-bindgen schema import` keeps in the user's folder: the folder, its safety, and its import.

Imports `runtime`.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_bindgen.runtime import bindings

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


__all__ = ["VARIABLE", "UserBindings", "bindings_folder", "home", "install", "searched", "unsafe", "user_packages"]

VARIABLE = "MCP_BINDGEN_HOME"
"""The environment variable that names another folder."""


def home() -> Path | None:
    """Return the folder: `MCP_BINDGEN_HOME`, or by default the system's folder for the data of a user.

    `None` if Python runs without packages of the user (`-s`, `-I`, `PYTHONNOUSERSITE`).

    Raises:
        ValueError: The variable is no absolute path; the folder would depend on the current folder.
    """
    if sys.flags.no_user_site:
        return None
    named = "" if sys.flags.ignore_environment else os.environ.get(VARIABLE, "")
    if not named:
        from platformdirs import user_data_path  # slow to load, and rarely needed

        return user_data_path("mcp-bindgen", appauthor=False)
    if not Path(named).is_absolute():
        raise ValueError(f"{VARIABLE} is {named!r}; give it an absolute path")
    return Path(named)


def bindings_folder() -> Path | None:
    """Return the folder of the generated packages; raises `ValueError` as `home` does."""
    folder = home()
    return folder / "generated" / "mcp_bindgen" if folder is not None else None


_STEPS = f"{bindings.NAMESPACE}.bridges"
_PACKAGE = re.compile(r"v\w+")


class UserBindings:
    """Finder of `sys.meta_path` for bindings and bridge steps in the user's folder, behind all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a package of bindings or of a step; `None` for any other name.

        Raises:
            ImportError: Another user could have written the package.
        """
        parent, _, name = fullname.rpartition(".")
        if parent not in (bindings.NAMESPACE, _STEPS) or not _PACKAGE.fullmatch(name):
            return None
        try:
            folder = bindings_folder()
        except ValueError as error:
            raise ImportError(f"{fullname} is not looked for: {error}", name=fullname) from None
        if folder is None:
            return None
        package = folder / ("bridges" if parent == _STEPS else name)
        file = package / (f"{name}.py" if parent == _STEPS else "__init__.py")
        if not file.is_file():
            return None
        objection = unsafe(package)
        if objection is not None:
            raise ImportError(f"{fullname} is not imported: {objection}", name=fullname)
        from importlib.util import spec_from_file_location

        inside = [str(package)] if parent == bindings.NAMESPACE else None
        return spec_from_file_location(fullname, file, submodule_search_locations=inside)


def install() -> None:
    """Let Python import the bindings in the user's folder, after all installed packages.

    `connect` and the command line do this; a program that imports such bindings itself calls it before, and so does a
    server that is to serve these revisions with a bridge.
    """
    if not any(isinstance(finder, UserBindings) for finder in sys.meta_path):
        sys.meta_path.append(UserBindings())
        bindings.SOURCES.add(user_packages)


def searched() -> Path | None:
    """Return the folder of the user's packages if `install` lets Python import them, or None."""
    try:
        return bindings_folder() if any(isinstance(finder, UserBindings) for finder in sys.meta_path) else None
    except ValueError:
        return None


def user_packages() -> list[str]:
    """Return the import names of the packages in the user's folder."""
    try:
        folder = bindings_folder()
        found = [] if folder is None else sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    except (OSError, ValueError):
        return []
    return [f"{bindings.NAMESPACE}.{name}" for name in found if _PACKAGE.fullmatch(name)]


def unsafe(package: Path, *, closed: Path | None = None) -> str | None:
    """Return why another user may have written code of a package, with the fix; `None` if the package is safe.

    The folder `closed` must be closed to other users, its content must belong to the user, and no other user may be
    able to replace a folder above it. On Windows the system closes the folders of a user.

    Args:
        package: The folder of the package, `HOME/generated/mcp_bindgen/NAME`, which need not exist yet, or a file.
        closed: A folder above it; by default `HOME/generated`.
    """
    if os.name != "posix":
        return None
    closed = closed or package.parents[1]
    try:
        for path in (closed, package.parent, package, *package.rglob("*")):
            if not os.path.lexists(path):
                continue
            found, shown = path.lstat(), _shown(path)
            if stat.S_ISLNK(found.st_mode):
                return f"{shown} is a link; replace it by its target"
            if found.st_uid != os.geteuid():
                return f"{shown} belongs to another user; remove it, and import the revision again"
            if found.st_mode & stat.S_IWOTH:
                return f"every user can write to {shown}; check its content, then run: chmod o-w {shown}"
        if closed.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            shown = _shown(closed)
            return f"{shown} is open to other users; check its content, then run: chmod 700 {shown}"
        for path in closed.resolve().parents:
            found = path.stat()
            if found.st_uid not in (0, os.geteuid()):
                return f"the parent folder {path} belongs to another user; set MCP_BINDGEN_HOME to a folder of yours"
            if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
                return f"every user can write to the parent folder {path}; set MCP_BINDGEN_HOME to a folder of yours"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    return None


def _shown(path: Path) -> str:
    """Return a path as one word for shells and terminals; another user may have chosen its name."""
    from shlex import quote

    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in quote(str(path)))
