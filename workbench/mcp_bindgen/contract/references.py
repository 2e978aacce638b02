"""References of a JSON Schema in a contract, which lead to places in the same schema."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import quote, unquote

import jsonschema_rs

from mcp_bindgen.app import MOST_STEPS, Complexity
from mcp_bindgen.json_schema.dialects import modern
from mcp_bindgen.json_schema.keywords import IN_PLACE, children
from mcp_bindgen.json_schema.references import absolute
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.pointer import join, value_at

_HERE = "urn:mcp-bindgen:schema"


class Root:
    """Schema with all its subschemas by pointer.

    Args:
        schema: The schema, which is read in 2020-12.
        pointer: Pointer to the schema in the document.

    Raises:
        BadInput: A reference leads out of the schema, nowhere, or only to itself.
    """

    def __init__(self, schema: Any, pointer: str) -> None:
        self.pointer = pointer
        self.schema = schema = modern(schema)
        self._schemas: dict[str, Any] = {}
        self._inside: dict[str, list[tuple[str, str]]] = {}
        self._walk("")
        self._anchors = self._named("$anchor", "$dynamicAnchor")
        self._ids = {absolute(schema, name): place for name, place in self._named("$id").items()}
        self._targets: dict[str, str | None] = {}
        pending = list(self._schemas)
        while pending:  # the target of a reference may be outside of all keywords
            known = len(self._schemas)
            for place in pending:
                self._follow(place)
            pending = list(self._schemas)[known:]
        self._check_grounded()

    def _named(self, *keywords: str) -> dict[str, str]:
        """Return name -> place of the schemas that a keyword names."""
        nodes = [(place, node) for place, node in self._schemas.items() if is_object(node)]
        named = ((node.get(keyword), place) for place, node in nodes for keyword in keywords)
        return {name: place for name, place in named if isinstance(name, str)}

    def at(self, place: str) -> Any:
        """Return the schema at the pointer `place`."""
        return self._schemas[place]

    def target(self, place: str) -> str | None:
        """Return the target of the reference at `place`, if there is one with a known target."""
        return self._targets.get(place)

    def accepts(self, place: str, value: Any) -> bool:
        """Return whether the schema at `place` certainly accepts `value`."""
        if self._is_complex:
            return False
        dialect = {"$schema": self.schema["$schema"]} if "$schema" in self.schema else {}
        try:
            registry = jsonschema_rs.Registry([(_HERE, self.schema)])
            asked = {**dialect, "$ref": f"{_HERE}#{quote(place)}"}
            return jsonschema_rs.validator_for(asked, registry=registry, offline=True).is_valid(value)
        except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
            return False

    @cached_property
    def _is_complex(self) -> bool:
        return Complexity(self.schema).exceeds(MOST_STEPS)

    def is_resource(self, place: str) -> bool:
        """Return whether the schema at `place` has an id of its own, which is the base of its references."""
        return place != "" and isinstance(self._schemas[place].get("$id"), str)

    def _walk(self, start: str) -> None:
        pending = [(start, value_at(self.schema, start))]
        while pending:
            place, node = pending.pop()
            if place in self._schemas:
                continue
            self._schemas[place] = node
            inside = list(_children(node, place)) if is_object(node) else []
            self._inside[place] = [(keyword, child) for keyword, child, _ in inside]
            pending.extend((child, schema) for _, child, schema in reversed(inside))

    def _follow(self, place: str) -> None:
        node = self._schemas[place]
        if not is_object(node) or not isinstance(reference := node.get("$ref"), str):
            return
        base, _, fragment = reference.partition("#")
        base = base and absolute(self.schema, base)
        inner = self._ids.get(base, "") if base else ""
        if base and base not in self._ids:
            raise self._error(
                place,
                f"the reference {reference!r} leads out of the schema, and nothing is fetched",
                "move what it refers to into '$defs'",
            )
        if inner or self._within_resource(place):
            self._targets[place] = None  # the base is another schema: only the validator follows it
            return
        fragment = unquote(fragment)
        found = fragment if fragment == "" or fragment.startswith("/") else self._anchors.get(fragment)
        if found is not None and found not in self._schemas and isinstance(value_at(self.schema, found), dict | bool):
            self._walk(found)
        if found is None or found not in self._schemas:
            raise self._error(place, f"the reference {reference!r} leads nowhere", "refer to an entry of '$defs'")
        self._targets[place] = found

    def _within_resource(self, place: str) -> bool:
        above = place
        while above:
            if above in self._schemas and is_object(self._schemas[above]) and self.is_resource(above):
                return True
            above = above.rpartition("/")[0]
        return False

    def _check_grounded(self) -> None:
        """Raise `BadInput` for a cycle of references; recursion below a property or an item is allowed."""
        try:
            TopologicalSorter({place: list(self._same(place)) for place in self._schemas}).prepare()
        except CycleError as error:
            *circle, _ = error.args[1]
            start = circle.index(min(circle, key=list(self._schemas).index))
            place = circle[(start + 1) % len(circle)]  # it refers to the first place
            raise self._error(
                place, "the references go in a circle", "break the circle with a property or an item"
            ) from None

    def _same(self, place: str) -> Iterator[str]:
        """Return the places that apply to the same value as `place`."""
        yield from (child for keyword, child in self._inside[place] if keyword in IN_PLACE)
        target = self._targets.get(place)
        if target is not None:
            yield target

    def _error(self, place: str, message: str, fix: str) -> BadInput:
        return BadInput(message, pointer=self.pointer + place, fix=fix)


def _children(node: dict[str, Any], place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield keyword, place and schema of the direct subschemas of `node`."""
    for keyword, step, part in children(node):
        yield keyword, join(place, keyword) if step is None else join(place, keyword, step), part
