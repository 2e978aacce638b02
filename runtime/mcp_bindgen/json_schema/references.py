"""References in a JSON Schema: by pointer, by anchor, or by the id of a part."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from mcp_bindgen.runtime.model.json_types import is_object

from .keywords import REFERENCES, nodes, objects
from .pointer import values_at


class Outside(LookupError):
    """A reference leads out of its schema."""


class Targets:
    """Targets of the references in a schema of any draft.

    Args:
        root: The schema.
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._resources: list[tuple[str, object]] = [("", root)]
        self._anchors: dict[str, list[object]] = {}
        for node in objects(root):
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
                if isinstance(name := node.get(keyword), str):
                    base, _, anchor = name.partition("#") if keyword.endswith("id") else ("", "", name)
                    self._anchors.setdefault(anchor, []).append(node)
                    if keyword.endswith("id"):
                        self._resources.append((base, node))

    def find(self, reference: object) -> Any:
        """Return the target of a reference, or `None` if it has none in the schema."""
        return next(iter(self.all(reference)), None)

    def all(self, reference: object) -> list[object]:
        """Return the possible targets of a reference, the likely one first; parts with similar ids all count."""
        if not isinstance(reference, str):
            return []
        base, _, fragment = reference.partition("#")
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(unquote(fragment), [])
        parts = self._resources
        if base:
            last, wanted = unquote(base).rpartition("/")[2], absolute(self._root, base)
            parts = [one for one in parts if one[0].rpartition("/")[2] == last]
            parts.sort(key=lambda one: absolute(self._root, one[0]) != wanted)
        return [found for _, node in parts for found in values_at(node, unquote(fragment))]

    def place(self, reference: str, source: str) -> str | None:
        """Return the pointer to the target of a reference at the pointer `source` in a schema in 2020-12.

        It is `None` if only a validator follows the reference: it is in a part with an id of its own, or leads into one
        that has references, or to less than the whole part.

        Raises:
            Outside: It leads out of the schema.
            LookupError: It leads nowhere.
        """
        base, _, fragment = reference.partition("#")
        part = self._places.get(absolute(self._root, base)) if base else ""
        if part is None:
            raise Outside("leads out of the schema, and nothing is fetched")
        if self.is_in_part(source) or (part and (fragment or has_references(values_at(self._root, part)[0]))):
            return None
        fragment = part or unquote(fragment)
        place = fragment if fragment[:1] in ("", "/") else self._places.get(f"#{fragment}")
        if place is None or not values_at(self._root, place):
            raise LookupError("leads nowhere")
        return place

    def is_in_part(self, place: str) -> bool:
        """Return whether a place is in a part with an id of its own, which is the base of its references."""
        above = (place[:end] for end, char in enumerate(f"{place}/") if end and char == "/")
        found = (node for one in above for node in values_at(self._root, one))
        return any(is_object(node) and isinstance(node.get("$id"), str) for node in found)

    @cached_property
    def _places(self) -> dict[str, str]:
        """Resolved ids, and anchors with `#`, of a schema in 2020-12 -> pointers."""
        return {
            f"#{node[word]}" if word != "$id" else absolute(self._root, node[word]).rstrip("#"): place
            for place, node in nodes(self._root)
            for word in ("$id", "$anchor", "$dynamicAnchor")
            if isinstance(node.get(word), str)
        }


def has_references(schema: object) -> bool:
    """Return whether a schema or one of its subschemas refers to a schema."""
    return any(not node.keys().isdisjoint(REFERENCES) for _, node in nodes(schema))


def absolute(root: object, reference: str) -> str:
    """Return a reference or an id, resolved against the id of the root; an anchor stays."""
    base = root.get("$id", "") if is_object(root) else ""
    with suppress(ValueError):  # one of them is no URI
        return reference if reference.startswith("#") else urljoin(str(base), reference)
    return reference
