"""Follow the references of a schema: each leads to a definition, and none leads only back to itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from . import pointer as json_pointer
from .check import DEEPEST
from .errors import BadInput, suggestion
from .json import is_object
from .keywords import Schema, rebuild, walk
from .reading import Reading

PREFIX = "#/$defs/"
_OTHER = "#/definitions/"


def target(reference: str) -> str:
    """Return the definition that `#/$defs/NAME` refers to."""
    return json_pointer.split(reference[1:])[1]


def follow(definitions: Mapping[str, Schema], reading: Reading) -> dict[str, Schema]:
    """Return the definitions with references to each other only.

    Raises:
        BadInput: In a strict reading: a reference leads elsewhere, or nowhere.
    """
    lost = {
        name: json_pointer.join("/$defs", name)
        for name, definition in definitions.items()
        if any(_is_lost(node, definitions) for _, node in walk(definition))
    }
    return {
        name: _followed(definition, lost[name], definitions, reading) if name in lost else definition
        for name, definition in definitions.items()
    }


def _is_lost(schema: Schema, known: Mapping[str, Schema]) -> bool:
    if "$ref" not in schema:
        return False
    reference: str = schema["$ref"]
    local = reference.startswith(PREFIX) and len(json_pointer.split(reference[1:])) == 2
    return not local or target(reference) not in known


def _followed(schema: Schema, here: str, known: Mapping[str, Schema], reading: Reading) -> Schema:
    if not _is_lost(schema, known):
        return rebuild(schema, lambda child, at: _followed(child, at, known, reading), here)
    reference: str = schema["$ref"]
    meant = {"$ref": reference.replace(_OTHER, PREFIX, 1)}
    error = BadInput(
        f"the reference {reference.replace(PREFIX, f'#{reading.root}/', 1)!r} leads nowhere",
        pointer=here,
        fix=suggestion(
            reference.rpartition("/")[2], known, f"refer to an entry of '{reading.root[1:]}' in the same file"
        ),
    )
    if not _is_lost(meant, known):
        reading.settle("reference-dialect", error, f"it is read as {meant['$ref']!r}")
        return {**schema, **meant}
    reading.settle("reference-dangling", error, "any JSON is accepted")
    return {keyword: value for keyword, value in schema.items() if keyword != "$ref"}


def ground(definitions: Mapping[str, Schema], reading: Reading) -> dict[str, Schema]:
    """Return definitions that may contain themselves below a property or an item, but none that *is* itself.

    Raises:
        BadInput: So many definitions stand for each other that following them could exhaust the stack; in a strict
            reading also: one stands for itself.
    """
    grounded = dict(definitions)
    while cycle := _cycle(grounded):
        error = BadInput(
            f"the references go in a circle: {' -> '.join([*cycle, cycle[0]])}",
            pointer=json_pointer.join("/$defs", cycle[0]),
            fix="break the circle with an object or an array",
        )
        following = cycle[1 % len(cycle)]
        reading.settle("reference-circle", error, f"{following} there is any JSON")
        grounded[cycle[0]] = _without(grounded[cycle[0]], following)
    return grounded


def _cycle(definitions: Mapping[str, Schema]) -> list[str]:
    """Return definitions that stand for each other in a circle, from the first in the alphabet on; none if none do."""
    graph = {name: list(_same(definition)) for name, definition in definitions.items()}
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(graph).static_order():
            depths[name] = 1 + max((depths[other] for other in graph[name]), default=0)
            if depths[name] > DEEPEST:
                raise BadInput(
                    "refers to a definition that refers to another, and so on, too often",
                    pointer=json_pointer.join("/$defs", name),
                    fix="refer to the last one",
                )
    except CycleError as error:
        *cycle, _ = (str(name) for name in reversed(error.args[1]))  # it says "is referred to by", we say "refers to"
        start = cycle.index(min(cycle))
        return [*cycle[start:], *cycle[:start]]
    return []


def _same(schema: Schema) -> Iterator[str]:
    """Return the definitions that a value of `schema` may be a value of as a whole."""
    if "$ref" in schema:
        yield target(schema["$ref"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        for member in schema.get(keyword, ()):
            if is_object(member):
                yield from _same(member)


def _without(schema: Schema, name: str) -> Schema:
    """Return `schema` without what makes it the definition `name` as a whole."""
    if "$ref" in schema:
        return {key: value for key, value in schema.items() if key != "$ref" or target(value) != name}
    parts: Schema = {
        keyword: [_without(member, name) if is_object(member) else member for member in schema[keyword]]
        for keyword in ("anyOf", "oneOf", "allOf")
        if keyword in schema
    }
    return {**schema, **parts}
