"""Project configuration: the packages to generate, and the rules that `diff` leaves out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from .errors import BadInput, locating, suggestion
from .json import is_object, join
from .toml import read_toml

FILE = "mcp-bindgen.toml"
_SHARED_FILE, _TABLE = "pyproject.toml", "mcp-bindgen"
_PAGE = "see docs/reference/configuration.md"


class Table(BaseModel):
    """A table of the configuration: unknown keys and values of other types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SchemaTable(Table):
    """A schema file of the project.

    Attributes:
        source: A path relative to the configuration, an https address or `git:REPO@REV:PATH`.
        semantics: Path of a file with facts that the schema cannot state.
    """

    source: str
    semantics: str = ""


class PackageTable(Table):
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
        settings: Name of an emitter -> its settings, which the emitter reads.
    """

    name: str
    out: str = "."
    revisions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    extension: str = ""
    semantics: str = ""
    only: tuple[str, ...] = ()
    templates: str = ""
    settings: Mapping[str, JsonValue] = {}


class Configuration(Table):
    """Content of `mcp-bindgen.toml`, or of the table `tool.mcp-bindgen` of `pyproject.toml`.

    That table of a scaffolded project describes the project instead, and is no configuration.

    Attributes:
        schemas: Name of a revision -> its schema file.
        revisions: Revisions of packages that name none.
        languages: Languages of packages that name none; by default Python.
        packages: The packages to generate.
        ignore: Rules that `diff` leaves out.
        callers: Profile of the callers of servers: its name, or the path of its file relative to the configuration.
    """

    schemas: Mapping[str, SchemaTable] = {}
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
        table = tools.get(_TABLE) if is_object(tools) else None
        is_shared = table is not None and not (is_object(table) and "kind" in table)  # `kind` is of scaffolded projects
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
        return read_table(Configuration, document["tool"][_TABLE] if pointer else document, pointer)


_Table = TypeVar("_Table", bound=Table)


def read_table(kind: type[_Table], value: object, pointer: str) -> _Table:
    """Return a table of the configuration; raise `BadInput` for its first error, at a place below `pointer`."""
    try:
        return kind.model_validate_json(json.dumps(value, default=str))  # in JSON mode, strict tuples accept lists
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    place, message, fix = first["loc"], first["msg"], _PAGE
    if first["type"] == "extra_forbidden":
        message, fix = f"unknown key {place[-1]!r}", suggestion(str(place[-1]), _keys(kind, place[:-1]))
    elif first["type"] == "missing":
        place, message = place[:-1], f"the key {place[-1]!r} is missing"
    raise BadInput(message, pointer=join(pointer, *place), fix=fix)


def _keys(table: type[Table], place: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the table at a place below a table."""
    tables = [table]
    for part in place:
        inner = [one.model_fields[str(part)].annotation for one in tables if part in one.model_fields]
        tables = [found for annotation in inner for found in _tables(annotation)] or tables
    return [name for one in tables for name in one.model_fields]


def _tables(annotation: Any) -> list[type[Table]]:
    """Return the tables inside of a type."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return [annotation]
    return [found for part in get_args(annotation) for found in _tables(part)]


def ignored_rules() -> tuple[str, ...]:
    """Return the rules that the project's configuration ignores."""
    file = find()
    return tuple(read(file).ignore) if file is not None else ()
