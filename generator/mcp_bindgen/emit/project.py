"""Packages that a command line or the project configuration asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mcp_bindgen.spec.errors import BadInput, locating, suggestion
from mcp_bindgen.spec.json import join
from mcp_bindgen.spec.project import Configuration, PackageTable, find, read, read_table

from .emitter import Bindings, Target
from .registry import DEFAULT, emitter
from .requested import Request, targets


def requests(project: Configuration, base: Path) -> Iterator[Request]:
    """Return a request for each package, revision and language.

    Args:
        project: The configuration.
        base: Folder of the configuration.

    Raises:
        BadInput: A package names no revision, or several packages would share a folder.
    """
    taken: set[Path] = set()
    for index, package in enumerate(project.packages):
        at = join("/packages", index)
        revisions = package.revisions or project.revisions
        if not revisions:
            raise BadInput("the package has no revision", pointer=at, fix='add revisions = ["2025-11-25"]')
        languages = package.languages or project.languages or (DEFAULT,)
        for language in package.settings:
            if language not in languages:
                pointer = join(at, "settings", language)
                fix = suggestion(language, languages)
                raise BadInput(f"the package is not generated in {language!r}", pointer=pointer, fix=fix)
        for revision in revisions:
            for language in languages:
                request = _request(project, package, revision, language, base, at)
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


def _request(
    project: Configuration, package: PackageTable, revision: str, language: str, base: Path, at: str
) -> Request:
    writer = emitter(language)
    place = join(at, "settings", language)
    own = project.schemas.get(revision)
    semantics = own.semantics if own else package.semantics
    return Request(
        revisions=() if own else (revision,),
        schema=own.source if own else None,
        name=revision if own else None,
        semantics=Path(semantics) if semantics else None,
        out=Path(package.out.replace("{language}", language)),
        package=package.name.replace("{revision}", writer.package_of(revision)),
        only=tuple(package.only),
        extensions=(package.extension,) if package.extension else (),
        language=language,
        templates=Path(package.templates) if package.templates else None,
        base=base,
        settings=read_table(writer.settings, package.settings.get(language, {}), place),
        place=place,
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
        found = [replace(one, strict=request.strict) for one in requests(read(file), file.parent)]
        if not found:
            raise BadInput(
                "there are no packages to generate", fix="add [[packages]]; see docs/reference/configuration.md"
            )
        made = [(one.place, target) for one in found for target in targets(one)]
        _check_definitions(made)
        return [target for _, target in made]


def _check_definitions(made: Sequence[tuple[str, Target]]) -> None:
    """Raise `BadInput` if settings rename a definition that no revision of their package has."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for place, target in made:
        if isinstance(target, Bindings) and target.options.settings.names:
            known[place] |= target.whole.definitions.keys()
    for place, target in made:
        for name in target.options.settings.names.keys() - known[place]:
            fix = suggestion(name, known[place], "name a definition of the schema")
            raise BadInput(f"there is no definition {name!r}", pointer=join(place, "names", name), fix=fix)
