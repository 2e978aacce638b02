"""Project configuration: the packages to generate, and the rules that `diff` leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from .errors import BadInput, locating, suggestion
from .json import is_array, is_object
from .pointer import join
from .toml import read_toml

FILE = "mcp-bindgen.toml"
_SHARED_FILE, _TABLE = "pyproject.toml", "mcp-bindgen"


@dataclass(frozen=True)
class SchemaTable:
    """A schema file of the project.

    Attributes:
        source: A path relative to the configuration, an https address or `git:REPO@REV:PATH`.
        semantics: Path of a file with facts that the schema cannot state.
    """

    source: str
    semantics: str = ""


@dataclass(frozen=True)
class PackageTable:
    """A package to generate, for each of its revisions and languages.

    Attributes:
        name: Name of the package. `{revision}` stands for the name of a revision's package, e.g. `v2025_11_25`.
        out: Folder above the package, relative to the configuration. `{language}` stands for the language.
        revisions: Revisions, names in `schemas` among them; by default `revisions` of the project.
        languages: Names of emitters; by default `languages` of the project.
        extension: Extension of the revisions to generate instead of them: a name, or the source of a schema file.
        semantics: Path of a file with the facts of the extension.
        only: Capabilities to restrict the package to; empty means everything.
        templates: Folder with templates that replace templates of the emitter.
    """

    name: str
    out: str = "."
    revisions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    extension: str = ""
    semantics: str = ""
    only: tuple[str, ...] = ()
    templates: str = ""


@dataclass(frozen=True)
class Configuration:
    """Content of `mcp-bindgen.toml`, or of the table `tool.mcp-bindgen` of `pyproject.toml`.

    Attributes:
        schemas: Name of a revision -> its schema file.
        revisions: Revisions of packages that name none.
        languages: Languages of packages that name none; by default Python.
        packages: The packages to generate.
        ignore: Rules that `diff` leaves out.
        callers: Profile of the callers of servers: its name, or the path of its file relative to the configuration.
    """

    schemas: Mapping[str, SchemaTable] = field(default_factory=dict[str, SchemaTable])
    revisions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    packages: tuple[PackageTable, ...] = ()
    ignore: tuple[str, ...] = ()
    callers: str = ""


def find(folder: Path | None = None) -> Path | None:
    """Return the configuration that is nearest to a folder, by default the working folder, or None.

    Raises:
        BadInput: Two files of one folder are configurations.
    """
    start = (folder or Path()).resolve()
    for place in (start, *start.parents):
        own, shared = place / FILE, place / _SHARED_FILE
        tools = read_toml(shared).get("tool") if shared.is_file() else None
        is_shared = is_object(tools) and _TABLE in tools
        if own.is_file() and is_shared:
            raise BadInput(
                f"[tool.{_TABLE}] of {_SHARED_FILE} is a configuration too", file=own, fix="keep one of them"
            )
        if own.is_file() or is_shared:
            return own if own.is_file() else shared
    return None


def read(file: Path) -> Configuration:
    """Return a configuration; raise `BadInput` if the file has an unknown key or a value of a wrong type."""
    document = read_toml(file)
    pointer = f"/tool/{_TABLE}" if file.name == _SHARED_FILE else ""
    with locating(file):
        return _table(Configuration, document["tool"][_TABLE] if pointer else document, pointer)


_Table = TypeVar("_Table", SchemaTable, PackageTable, Configuration)


def _table(kind: type[_Table], value: object, pointer: str) -> _Table:
    """Return a table of the configuration."""
    if not is_object(value):
        raise BadInput("is not a table", pointer=pointer, fix="see docs/reference/configuration.md")
    known = {one.name: one for one in fields(kind)}
    for key in value.keys() - known.keys():
        raise BadInput(f"unknown key {key!r}", pointer=join(pointer, key), fix=suggestion(key, known))
    for name, one in known.items():
        if one.default is MISSING and one.default_factory is MISSING and name not in value:
            raise BadInput(f"the key {name!r} is missing", pointer=pointer, fix="see docs/reference/configuration.md")
    return kind(**{key: _value(key, found, join(pointer, key), known[key].type) for key, found in value.items()})


def _value(key: str, value: object, pointer: str, type: object) -> Any:
    if key == "schemas" and is_object(value):
        return {name: _table(SchemaTable, one, join(pointer, name)) for name, one in value.items()}
    if key == "packages" and is_array(value):
        return tuple(_table(PackageTable, one, join(pointer, index)) for index, one in enumerate(value))
    if type == "str" and isinstance(value, str):
        return value
    if type == "tuple[str, ...]" and is_array(value) and all(isinstance(one, str) for one in value):
        return tuple(value)
    wanted = {"str": "a text", "tuple[str, ...]": "a list of texts", "tuple[PackageTable, ...]": "a list of tables"}
    raise BadInput(
        f"is not {wanted.get(str(type), 'a table')}", pointer=pointer, fix="see docs/reference/configuration.md"
    )


def ignored_rules() -> tuple[str, ...]:
    """Return the rules that the project's configuration ignores."""
    file = find()
    return tuple(read(file).ignore) if file is not None else ()
