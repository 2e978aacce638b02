"""Project configuration: the packages to generate, and the rules that `diff` leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import locating, suggestion
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.pointer import join
from mcp_bindgen.spec.toml import read_toml

from .emitter import Target
from .registry import DEFAULT, emitter
from .requested import Request, targets

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
        languages: Languages of packages that name none.
        packages: The packages to generate.
        ignore: Rules that `diff` leaves out.
    """

    schemas: Mapping[str, SchemaTable] = field(default_factory=dict[str, SchemaTable])
    revisions: tuple[str, ...] = ()
    languages: tuple[str, ...] = (DEFAULT,)
    packages: tuple[PackageTable, ...] = ()
    ignore: tuple[str, ...] = ()

    def requests(self, base: Path) -> Iterator[Request]:
        """Return a request for each package, revision and language.

        Args:
            base: Folder of the configuration.

        Raises:
            BadInput: A package names no revision, or several packages would share a folder.
        """
        taken: set[Path] = set()
        for index, package in enumerate(self.packages):
            at = join("/packages", index)
            revisions = package.revisions or self.revisions
            if not revisions:
                raise BadInput("the package has no revision", pointer=at, fix='add revisions = ["2025-11-25"]')
            for revision in revisions:
                for language in package.languages or self.languages:
                    request = self._request(package, revision, language, base)
                    assert request.out is not None
                    place = request.out / str(request.package)
                    if place in taken:
                        raise BadInput(
                            f"another package is in {place} already",
                            pointer=at,
                            fix="put {revision} into its name, or {language} into its folder",
                        )
                    taken.add(place)
                    yield request

    def _request(self, package: PackageTable, revision: str, language: str, base: Path) -> Request:
        own = self.schemas.get(revision)
        semantics = own.semantics if own else package.semantics
        return Request(
            revisions=() if own else (revision,),
            schema=own.source if own else None,
            name=revision if own else None,
            semantics=Path(semantics) if semantics else None,
            out=Path(package.out.replace("{language}", language)),
            package=package.name.replace("{revision}", emitter(language).package_of(revision)),
            only=tuple(package.only),
            extensions=(package.extension,) if package.extension else (),
            language=language,
            templates=Path(package.templates) if package.templates else None,
            base=base,
        )


def find(folder: Path | None = None) -> Path | None:
    """Return the configuration that is nearest to a folder, by default the working folder, or None.

    Raises:
        BadInput: Two files of one folder are configurations.
    """
    start = (folder or Path()).resolve()
    for place in (start, *start.parents):
        own, shared = place / FILE, place / _SHARED_FILE
        is_shared = shared.is_file() and _TABLE in read_toml(shared).get("tool", {})
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


def wanted(request: Request) -> list[Target]:
    """Return the packages that a command line asks for; without arguments, the packages of the configuration.

    Raises:
        BadInput: The command line or the configuration is wrong.
    """
    file = find() if replace(request, strict=False) == Request() else None
    if file is None:
        return targets(request)
    with locating(file):
        found = [replace(one, strict=request.strict) for one in read(file).requests(file.parent)]
    if not found:
        raise BadInput(
            "there are no packages to generate", file=file, fix="add [[packages]]; see docs/reference/configuration.md"
        )
    return [target for one in found for target in targets(one)]


def ignored_rules() -> tuple[str, ...]:
    """Return the rules that the project's configuration ignores."""
    file = find()
    return tuple(read(file).ignore) if file is not None else ()
