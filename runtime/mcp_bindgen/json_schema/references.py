"""References in a JSON Schema: by pointer, by anchor, or by the id of a part."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urljoin

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .keywords import objects


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
        found = [node for _, node in parts]
        for token in tokens(unquote(fragment)):
            found = [below for node in found for below in step(node, token)]
        return found


def absolute(root: object, reference: str) -> str:
    """Return a reference or an id, resolved against the id of the root; an anchor stays."""
    base = root.get("$id", "") if is_object(root) else ""
    with suppress(ValueError):  # one of them is no URI
        return reference if reference.startswith("#") else urljoin(str(base), reference)
    return reference


def tokens(pointer: str) -> list[str]:
    """Return the reference tokens of a JSON Pointer."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def step(node: object, token: str) -> list[Any]:
    """Return the part of a JSON value that a token of a pointer names, in a list; empty if there is none."""
    if is_object(node):
        return [node[token]] if token in node else []
    index = int(token) if token.isdecimal() else -1
    return node[index : index + 1] if is_array(node) and index >= 0 else []
