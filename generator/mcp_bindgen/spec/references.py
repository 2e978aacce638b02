"""Check the references of a schema: each leads to a definition, and no definition is only itself."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from graphlib import TopologicalSorter
from itertools import dropwhile
from operator import ne
from urllib.parse import quote

from .check import MAX_DEPTH
from .diagnostics import DiagnosticContext
from .errors import BadInput, suggestion
from .json import is_object, join, split
from .keywords import PREFIX, Schema, rebuild, walk

_OTHER = "#/definitions/"
_SHOWN = 8
"""Maximum number of names of a cycle in an error."""


def target(reference: str) -> str:
    """Return the definition that `#/$defs/NAME` refers to."""
    return split(reference[1:])[1]


def reference(name: str) -> str:
    """Return the reference to a definition; the inverse of `target`."""
    return join("#/$defs", name)


def as_uri(reference: str) -> str:
    """Return a reference to a definition with the escapes of a URI, which validators require."""
    return f"#{quote(reference[1:], safe='/$~')}"


def with_uris(schema: Schema, _: str = "") -> Schema:
    """Return a copy of a schema in which all references have the escapes of a URI."""
    copy = rebuild(schema, with_uris)
    return {**copy, "$ref": as_uri(schema["$ref"])} if "$ref" in schema else copy


def follow(
    definitions: Mapping[str, Schema], context: DiagnosticContext, known: Container[str] = ()
) -> dict[str, Schema]:
    """Return the definitions, with references to each other only.

    Args:
        definitions: The definitions.
        context: Reports references that lead nowhere.
        known: Names of definitions whose references were followed already.

    Raises:
        BadInput: In strict mode: the target of a reference is not a definition, or is missing.
    """
    good = {reference(name) for name in definitions}
    lost = {
        name: join("/$defs", name)
        for name, definition in definitions.items()
        if name not in known
        and any("$ref" in one and one["$ref"] not in good and _is_lost(one, definitions) for one in walk(definition))
    }
    return {
        name: _followed(definition, lost[name], definitions, context) if name in lost else definition
        for name, definition in definitions.items()
    }


def _is_lost(schema: Schema, known: Mapping[str, Schema]) -> bool:
    if "$ref" not in schema:
        return False
    reference: str = schema["$ref"]
    local = reference.startswith(PREFIX) and len(split(reference[1:])) == 2
    return not local or target(reference) not in known


def _followed(schema: Schema, here: str, known: Mapping[str, Schema], context: DiagnosticContext) -> Schema:
    if not _is_lost(schema, known):
        return rebuild(schema, lambda child, at: _followed(child, at, known, context), here)
    reference: str = schema["$ref"]
    rewritten = {"$ref": reference.replace(_OTHER, PREFIX, 1)}
    entry = f"refer to an entry of '{context.root[1:]}' in the same file"
    near = suggestion(reference.rpartition("/")[2], known, entry)
    words = {"reference": reference.replace(PREFIX, f"#{context.root}/", 1), "near": near}
    if not _is_lost(rewritten, known):
        context.report("reference-dialect", here, **words, rewritten=rewritten["$ref"])
        return {**schema, **rewritten}
    context.report("reference-dangling", here, **words)
    return {keyword: value for keyword, value in schema.items() if keyword != "$ref"}


def ground(definitions: Mapping[str, Schema], context: DiagnosticContext) -> dict[str, Schema]:
    """Return definitions without alias cycles; recursion below a property or an item is allowed.

    Raises:
        BadInput: A chain of aliases is so long that recursion could exhaust the stack. In strict mode also: a
            definition is an alias of itself.
    """
    grounded = dict(definitions)
    for circle in list(_circles({name: list(_same(definition)) for name, definition in definitions.items()})):
        last, first = circle[-1], circle[0]
        shown = [last, *circle[:-1], last] if len(circle) <= _SHOWN else [last, *circle[: _SHOWN - 2], "...", last]
        at = join("/$defs", last)
        context.report("reference-circle", at, circle=" -> ".join(shown), first=first)
        grounded[last] = _without(grounded[last], first)
    _check_depth(grounded)
    return grounded


def _circles(graph: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Return cycles of aliases, one for each reference to remove so that no cycle is left.

    The last definition of a cycle refers to its first definition; this reference is to be removed. Each definition is
    visited once, in alphabetical order.
    """
    done: set[str] = set()
    for start in sorted(graph, reverse=True):
        path: dict[str, Iterator[str]] = {} if start in done else {start: iter(sorted({*graph[start]}))}
        while path:
            here = next(reversed(path))
            following = next(path[here], None)
            if following is None:
                done.add(here)
                del path[here]
            elif following in path:
                yield [*dropwhile(partial(ne, following), path)]
            elif following not in done:
                path[following] = iter(sorted({*graph[following]}))


def _check_depth(definitions: Mapping[str, Schema]) -> None:
    """Raise `BadInput` for chains of aliases so long that recursion could exhaust the stack."""
    graph = {name: list(_same(definition)) for name, definition in definitions.items()}
    depths: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        depths[name] = 1 + max((depths[other] for other in graph[name]), default=0)
        if depths[name] > MAX_DEPTH:
            raise BadInput(
                "refers to a definition that refers to another, and so on, too often",
                pointer=join("/$defs", name),
                fix="refer to the last one",
            )


def _same(schema: Schema) -> Iterator[str]:
    """Return the definitions of which `schema` is an alias, or a union or intersection."""
    if "$ref" in schema:
        yield target(schema["$ref"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        for member in schema.get(keyword, ()):
            if is_object(member):
                yield from _same(member)


def _without(schema: Schema, name: str) -> Schema:
    """Return `schema` without being an alias of the definition `name`."""
    if "$ref" in schema:
        return {key: value for key, value in schema.items() if key != "$ref" or target(value) != name}
    parts: Schema = {
        keyword: [_without(member, name) if is_object(member) else member for member in schema[keyword]]
        for keyword in ("anyOf", "oneOf", "allOf")
        if keyword in schema
    }
    return {**schema, **parts}
