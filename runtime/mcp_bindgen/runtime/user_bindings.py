"""Import the bindings that `mcp-bindgen schema import` keeps in the user's folder, if nobody else could change them."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .home import bindings_folder

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_NAMESPACE = __name__.partition(".")[0]
_STEPS = f"{_NAMESPACE}.bridges"
_PACKAGE = re.compile(r"v\w+")


class UserBindings:
    """Finds bindings and steps in the user's folder: a finder of `sys.meta_path`, behind all others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a package of bindings is, or the module of a step; `None` for anything else.

        Raises:
            ImportError: It is there, but others could have written it.
        """
        namespace, _, name = fullname.rpartition(".")
        if namespace not in (_NAMESPACE, _STEPS) or not _PACKAGE.fullmatch(name):
            return None
        try:
            folder = bindings_folder()
        except ValueError as error:
            raise ImportError(f"{fullname} is not looked for: {error}", name=fullname) from None
        if folder is None:
            return None
        package = folder / ("bridges" if namespace == _STEPS else name)
        file = package / (f"{name}.py" if namespace == _STEPS else "__init__.py")
        if not file.is_file():
            return None
        objection = unsafe(package)
        if objection is not None:
            raise ImportError(f"{fullname} is not imported: {objection}", name=fullname)
        from importlib.util import spec_from_file_location

        inside = [str(package)] if namespace == _NAMESPACE else None
        return spec_from_file_location(fullname, file, submodule_search_locations=inside)


def install() -> None:
    """Let Python find the user's bindings, after everything that is installed."""
    if not any(isinstance(finder, UserBindings) for finder in sys.meta_path):
        sys.meta_path.append(UserBindings())


def packages() -> list[str]:
    """Return the names of the packages in the user's folder; none where there is no such folder."""
    try:
        folder = bindings_folder()
        found = [] if folder is None else sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    except (OSError, ValueError):
        return []
    return [name for name in found if _PACKAGE.fullmatch(name)]


def unsafe(package: Path) -> str | None:
    """Say why code in a package of the user's folder may be somebody else's, and the fix; `None` if all is well.

    The folder `generated` must be closed to everybody else, what is in it must be the user's, and nobody else may be
    able to put another folder in the place of one above it. On Windows the folders of a user are closed by the system.

    Args:
        package: The folder of the package, `HOME/generated/mcp_bindgen/NAME`; it need not be there yet.
    """
    if os.name != "posix":
        return None
    closed = package.parents[1]
    try:
        for path in (closed, package.parent, package, *package.rglob("*")):
            if not os.path.lexists(path):
                continue
            found, shown = path.lstat(), _shown(path)
            if stat.S_ISLNK(found.st_mode):
                return f"{shown} is a link; replace it by what it leads to"
            if found.st_uid != os.geteuid():
                return f"{shown} belongs to somebody else; remove it, and import the revision again"
            if found.st_mode & stat.S_IWOTH:
                return f"everybody can write to {shown}; look at what is in it, then run: chmod o-w {shown}"
        if closed.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            shown = _shown(closed)
            return f"{shown} is open to others; look at what is in it, then run: chmod 700 {shown}"
        for path in closed.resolve().parents:
            found = path.stat()
            if found.st_uid not in (0, os.geteuid()):
                return f"{path}, above it, belongs to somebody else; set MCP_BINDGEN_HOME to a folder of yours"
            if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
                return f"everybody can write to {path}, above it; set MCP_BINDGEN_HOME to a folder of yours"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    return None


def _shown(path: Path) -> str:
    """Return a path as a shell and a terminal take it for nothing else: others may have chosen its name."""
    from shlex import quote

    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in quote(str(path)))
