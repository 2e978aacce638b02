"""References of a JSON Schema in a contract, which lead to places in the same schema."""

from __future__ import annotations

from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from mcp_bindgen.app import MOST_STEPS, Complexity
from mcp_bindgen.json_schema.dialects import modern
from mcp_bindgen.json_schema.keywords import IN_PLACE, subschemas
from mcp_bindgen.json_schema.references import Outside, Targets, has_references
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_object, value_at

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
        self._places: list[str] = []
        self._references = Targets(schema)
        self.targets: dict[str, str] = {}  # place of a reference -> place of its target
        self._same = TopologicalSorter[str]()  # place -> places that apply to the same value
        self._walk("")
        for place in self._places:  # grows in the loop: the target of a reference may be outside of all keywords
            self._follow(place)
        self._check_grounded()

    def at(self, place: str) -> Any:
        """Return the schema at the pointer `place`."""
        return self._schemas[place]

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
        """Return whether the schema at `place` has an id of its own, which is the base of references in it."""
        node = self.at(place)
        return place != "" and isinstance(node.get("$id"), str) and has_references(node)

    def _walk(self, start: str) -> None:
        pending = [(start, value_at(self.schema, start))]
        while pending:
            place, node = pending.pop()
            if not (is_object(node) or isinstance(node, bool)):
                raise LookupError("leads nowhere")
            if place not in self._schemas:
                self._schemas[place] = node
                self._places.append(place)
                inside = list(subschemas(node, place)) if is_object(node) else []
                self._same.add(place, *(child for keyword, child, _ in inside if keyword in IN_PLACE))
                pending.extend((child, schema) for _, child, schema in reversed(inside))

    def _follow(self, place: str) -> None:
        node = self._schemas[place]
        if not is_object(node) or not isinstance(reference := node.get("$ref"), str):
            return
        try:
            if (found := self._references.place(reference, place)) is not None:
                self.targets[place] = found
                self._same.add(place, found)
                self._walk(found)
        except LookupError as error:
            is_outside = isinstance(error, Outside)
            fix = "move what it refers to into '$defs'" if is_outside else "refer to an entry of '$defs'"
            raise BadInput(f"the reference {reference!r} {error}", pointer=self.pointer + place, fix=fix) from None

    def _check_grounded(self) -> None:
        """Raise `BadInput` for a cycle of references; recursion below a property or an item is allowed."""
        try:
            self._same.prepare()
        except CycleError as error:
            *circle, _ = error.args[1]
            start = circle.index(min(circle, key=self._places.index))
            place = circle[(start + 1) % len(circle)]  # it refers to the first place
            fix = "break the circle with a property or an item"
            raise BadInput("the references go in a circle", pointer=self.pointer + place, fix=fix) from None
