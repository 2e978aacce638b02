"""Places of findings in schema files: file, JSON Pointer and line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from mcp_bindgen.diff.finding import Comparison, Finding
from mcp_bindgen.diff.location import Step, root
from mcp_bindgen.diff.selectors import parse_steps
from mcp_bindgen.spec import BadInput, Diagnostic, Store, sources
from mcp_bindgen.spec.errors import near
from mcp_bindgen.spec.json import is_object, join, value_at
from mcp_bindgen.spec.jsonc import Located
from mcp_bindgen.spec.sources import Readable, Source, git_place, is_range, is_source

from .document import NOWHERE, Place

_DEFINITIONS = ("$defs", "definitions")
_UNIONS = ("anyOf", "oneOf")
_MAX_REFERENCES = 20


class SchemaPlaces:
    """Places of the findings of `diff`.

    Args:
        comparisons: The comparisons.
        names: The words of the command line that name their revisions.
        store: The `schema/` folder.
    """

    def __init__(self, comparisons: Sequence[Comparison], names: Sequence[str], store: Store) -> None:
        self._sources: dict[str, Readable] = {}
        for revision in {side.revision for one in comparisons for side in (one.old, one.new)}:
            with suppress(BadInput):  # a schema file or a commit
                self._sources[revision] = near(store.folder(revision) / "schema.json")
        self._sources |= _named_sources(comparisons, names, store)
        self._file = cache(self._read)

    def __call__(self, comparison: Comparison, finding: Finding | Diagnostic) -> Place:
        """Return the place in the new schema file, or in the old one if the new one lacks the definition."""
        if isinstance(finding, Diagnostic):
            files = (self._file(side.revision) for side in (comparison.new, comparison.old))
            file = next((one for one in files if one is not None and one.argument == finding.file), None)
            return Place(finding.file, finding.pointer, file.located.line(finding.pointer) if file is not None else 0)
        sides = (comparison.new, finding.definition_new), (comparison.old, finding.definition_old)
        found = [(file, name) for side, name in sides if (file := self._file(side.revision)) is not None]
        for file, definition in found:
            for name in (root(finding.subject), definition):
                if name in file.definitions:
                    return file.place(name, finding.subject)
        return next((Place(file.name, "", 1) for file, _ in found), NOWHERE)

    def _read(self, revision: str) -> _SchemaFile | None:
        source = self._sources.get(revision)
        return None if source is None else _SchemaFile(sources.read(source))


def _named_sources(comparisons: Sequence[Comparison], names: Sequence[str], store: Store) -> dict[str, Readable]:
    """Return revision -> schema file, for files and commits that the command line names."""
    if len(names) == 1 and is_range(names[0]):
        place = git_place(names[0])
        return {
            comparison.new.revision: place.at(comparison.commits[-1])
            for comparison in comparisons
            if comparison.commits
        }
    sides = (comparisons[0].old, comparisons[0].new) if len(names) == 2 else ()
    return {
        side.revision: name
        for side, name in zip(sides, names, strict=False)
        if is_source(name, store.pins) and name != sources.STDIN and "://" not in name
    }


class _SchemaFile:
    def __init__(self, source: Source) -> None:
        self.argument = source.argument
        self.name = source.argument if source.commit is None else git_place(source.argument).path
        self.located = Located(source.content.decode("utf-8-sig"))
        self._schema = self.located.value
        self._keyword = next((one for one in _DEFINITIONS if is_object(self._schema.get(one))), _DEFINITIONS[0])
        self.definitions: Mapping[str, Any] = self._schema.get(self._keyword, {})

    def place(self, name: str, subject: str) -> Place:
        """Return the place of a subject below a definition, as deep as its steps lead."""
        steps = parse_steps(subject[len(name) :]) if root(subject) == name else None
        pointer = descend(self._schema, join("", self._keyword, name), steps or ())
        return Place(self.name, pointer, self.located.line(pointer))


def descend(document: Any, pointer: str, steps: Sequence[Step]) -> str:
    """Return the pointer to which steps lead below a schema, as far as they lead."""
    for one in steps:
        found = _below(document, pointer, one, _MAX_REFERENCES)
        if found is None:
            break
        pointer = found
    return pointer


def _below(document: Any, pointer: str, wanted: Step, depth: int) -> str | None:
    """Return the pointer to one step below a schema, through references and unions."""
    schema = value_at(document, pointer)
    if not is_object(schema) or depth == 0:
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return _below(document, reference[1:], wanted, depth - 1)
    kind, name = wanted
    keywords = {"field": ("properties", name), "items": ("items",), "values": ("additionalProperties",)}
    if kind in keywords and value_at(schema, join("", *keywords[kind])) is not None:
        return join(pointer, *keywords[kind])
    for keyword in (*_UNIONS, "allOf"):
        for index, form in enumerate(schema.get(keyword, ())):
            here = join(pointer, keyword, index)
            if kind == "form" and is_object(form) and str(form.get("$ref")).endswith(f"/{name}"):
                return here
            found = _below(document, here, wanted, depth - 1) if kind != "form" else None
            if found is not None:
                return found
    return None
