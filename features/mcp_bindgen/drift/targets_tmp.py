from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from mcp_bindgen.json_schema.keywords import NAMED
from mcp_bindgen.runtime.model.json_types import is_array, is_object

_SCHEMAS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")


def join(*a):
    return ""


def value_at(node, pointer):
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if is_object(node) and token in node:
            node = node[token]
        elif is_array(node) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            return None
    return node


class Targets:
    """Targets of the references of a schema.

    Args:
        root: The schema.
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    def find(self, reference: str) -> Any:
        """Return the target of a local reference, by pointer, anchor or id, or `None` if there is none."""
        base, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"#{fragment}")
        return value_at(self._named.get(_absolute(self._root, base)) if base else self._root, fragment)

    @cached_property
    def _named(self) -> dict[str, Any]:
        """`#` and anchor, or id -> schema."""
        found: dict[str, Any] = {}
        pending = [self._root]
        for node in pending:  # grows in the loop
            if is_object(node):
                pending.extend(child for _, _, child in _children(node, ""))
                found |= {f"#{node[key]}": node for key in ("$anchor", "$dynamicAnchor") if key in node}
                found |= {_absolute(self._root, str(node[key])): node for key in ("$id", "id") if key in node}
        return found


def _absolute(root: Any, reference: str) -> str:
    """Return a reference or an id, resolved against the id of the root; an anchor stays."""
    base = root.get("$id", "") if is_object(root) else ""
    with suppress(ValueError):  # one of them is no URI
        return reference if reference.startswith("#") else urljoin(str(base), reference)
    return reference


def _children(node: dict[str, Any], place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield keyword, place and schema of the direct subschemas of `node`."""
    for keyword in _SCHEMAS:
        if isinstance(node.get(keyword), dict | bool):
            yield keyword, join(place, keyword), node[keyword]
    for keyword in _LISTS:
        members: Any = node.get(keyword)
        if is_array(members):
            for index, member in enumerate(members):
                yield keyword, join(place, keyword, index), member
    for keyword in sorted(NAMED):
        named: Any = node.get(keyword)
        if is_object(named):
            for name, member in named.items():
                if isinstance(member, dict | bool):  # some of `dependencies` are lists
                    yield keyword, join(place, keyword, name), member
