"""Read and write `[tool.mcp-bindgen]` in the `pyproject.toml` of a project of ours, and check names of projects."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.spec.errors import BadInput, locating
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.revisions import order
from mcp_bindgen.spec.toml import read_toml

Kind = Literal["server", "client"]

FILE = "pyproject.toml"
TABLE = "mcp-bindgen"
TRANSPORTS = ("stdio", "http", "sse")
_FIX = "start one with: mcp-bindgen scaffold server NAME"


@dataclass(frozen=True)
class Project:
    """A scaffolded project.

    Attributes:
        folder: Its folder.
        kind: Whether it is a server or a client.
        package: The import name of its package, which is in `src/`.
        revisions: The revisions that it speaks, the oldest first.
        contract: The file of its contract, if it has one.
        transports: How messages travel: `stdio`, `http` (Streamable HTTP), `sse` (HTTP+SSE).
    """

    folder: Path
    kind: Kind
    package: str
    revisions: tuple[str, ...]
    contract: Path | None = None
    transports: tuple[str, ...] = ("stdio",)

    @property
    def file(self) -> Path:
        """Its `pyproject.toml`."""
        return self.folder / FILE

    @property
    def source(self) -> Path:
        """The folder of its package."""
        return self.folder / "src" / self.package

    @property
    def generated(self) -> Path:
        """The folder inside of its package whose files are ours."""
        return self.source / "contract"

    @property
    def name(self) -> str:
        """The name of the project, or of its package if it has none."""
        named = read_toml(self.file).get("project", {})
        return str(named.get("name", self.package)) if is_object(named) else self.package

    @classmethod
    def read(cls, folder: Path) -> Project:
        """Return the project in a folder.

        Raises:
            BadInput: There is none, or its table `[tool.mcp-bindgen]` cannot be used.
        """
        file = folder / FILE
        if not file.is_file():
            raise BadInput(f"has no {FILE}, so it is no project of ours", file=folder, fix=_FIX)
        tools = read_toml(file).get("tool", {})
        table = tools.get(TABLE) if is_object(tools) else None
        if not is_object(table):
            raise BadInput(f"has no [tool.{TABLE}], so it is no project of ours", file=file, fix=_FIX)
        with locating(file):
            return _project(folder, dict(table))

    def written(self, text: str) -> str:
        """Return the text of a `pyproject.toml` with the table of this project; everything else stays.

        Raises:
            BadInput: `text` is not TOML, or `tool` is no table in it.
        """
        try:
            document = tomlkit.parse(text)
        except TOMLKitError as error:
            raise BadInput(f"is not TOML: {error}", file=self.file, fix="correct it there") from None
        table: MutableMapping[str, Any] = document
        for name in ("tool", TABLE):
            if name not in table:
                table[name] = tomlkit.table(is_super_table=name == "tool")
            if not isinstance(table[name], MutableMapping):
                raise BadInput(f"{name!r} is no table there", file=self.file, fix="correct it there")
            table = table[name]
        for key, value in self._values().items():
            if value is None:
                table.pop(key, None)
            elif table.get(key) != value:
                table[key] = value
        return tomlkit.dumps(document)

    def _values(self) -> dict[str, Any]:
        """Return the table as it is written; `None` for absent keys."""
        return {
            "kind": self.kind,
            "package": self.package,
            "revisions": list(self.revisions),
            "contract": self.contract.relative_to(self.folder).as_posix() if self.contract else None,
            "transports": list(self.transports),
        }


def is_module(name: object) -> bool:
    """Return whether `name` can be imported by that name."""
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name)


def _project(folder: Path, table: dict[str, Any]) -> Project:
    kind = _entry(table, "kind", lambda value: value in ("server", "client"), '"server" or "client"')
    package = _entry(table, "package", is_module, 'the import name of the package, as in "weather"')
    revisions = _entry(table, "revisions", _are_names, 'a list of revisions, as in ["2025-11-25"]')
    contract = _entry({"contract": None, **table}, "contract", _is_path, "a path inside of the project")
    transports = _entry(
        {"transports": ["stdio"], **table},
        "transports",
        lambda value: _are_names(value) and set(value) <= set(TRANSPORTS),
        f"a list of {' and '.join(TRANSPORTS)}",
    )
    place = folder / contract if contract else None
    return Project(folder, kind, package, tuple(sorted(revisions, key=order)), place, tuple(transports))


def _entry(table: dict[str, Any], key: str, fits: Callable[[Any], bool], what: str) -> Any:
    if key not in table or not fits(table[key]):
        raise BadInput(f"[tool.{TABLE}] needs {key!r}: {what}", fix="correct it there")
    return table[key]


def _are_names(value: Any) -> bool:
    return is_array(value) and bool(value) and all(isinstance(name, str) and name for name in value)


def _is_path(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and bool(value) and not Path(value).is_absolute() and ".." not in Path(value).parts
    )


# --- names ------------------------------------------------------------------------------------------------------------


_TAKEN = {"mcp_bindgen", "test", "tests", "src", "contract", "conftest", "pytest", "anyio", "pydantic", "mcp"}
"""Names of packages that a project's package would hide, or be mistaken for."""

_CLASSES = {"AnyClient", "Client", "Context", "Curious", "HttpApp", "Json", "Path", "Server", "ToolError", "TypeAlias"}
"""Names that the files of projects import or define beside the project's class."""


@dataclass(frozen=True)
class Names:
    """The names of a project.

    Attributes:
        project: As it was given, e.g. `weather-app`.
        package: The import name, e.g. `weather_app`.
        class_: The name of its class, e.g. `WeatherApp`.
    """

    project: str
    package: str
    class_: str


def names_of(project: str) -> Names:
    """Return the names of a project that is to be called `project`.

    Raises:
        BadInput: It cannot be called that.
    """
    package = project.replace("-", "_")
    fix = "use letters, digits, - and _, as in weather-app"
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?", project) or not package.isidentifier():
        raise BadInput(f"{project!r} is no name for a project", fix=fix)
    if not is_module(package):
        raise BadInput(f"{project!r} is a word of Python's", fix=f"try {project}-server")
    if package.lower() in {name.lower() for name in sys.stdlib_module_names} | _TAKEN:
        raise BadInput(f"{project!r} would stand in the way of the module {package}", fix=f"try my-{project}")
    class_ = class_name(package)
    return Names(project, package, f"My{class_}" if class_ in _CLASSES else class_)
