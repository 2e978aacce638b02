"""Definitions that several schemas of a contract share, so that they become one type."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.spec.json import is_object

from . import names

_REFERENCE = re.compile(r'"\$(?:ref|dynamicRef|recursiveRef)": ?"((?:[^"\\]|\\.)*)"')
_DEFINITION = re.compile(r"#/\$defs/([\w.-]+)")
_BESIDE = frozenset({"$defs", "$schema", "description", "title"})
"""Members of a schema without influence on its type."""


class Shared:
    """Definitions with the same name and meaning in several schemas.

    Args:
        schemas: All schemas of the contract.
        scope: Scope of the names of types.

    Attributes:
        read: Names of the types that are built already.
    """

    def __init__(self, schemas: Iterable[Any], scope: names.Scope) -> None:
        found: Counter[str] = Counter()
        stems: dict[str, str] = {}
        for schema in schemas:
            definitions: Any = schema.get("$defs") if is_object(schema) else None
            keys = {_key(schema, name): name for name in definitions} if is_object(definitions) else {}
            title = _titled(schema)
            if title is not None:
                keys[_key_of(title, schema, schema)] = title
            known = {key: name for key, name in keys.items() if key is not None}
            found.update(known.keys())
            stems |= known
        self._names = {key: scope.claim(class_name(stems[key])) for key, count in found.items() if count > 1}
        self.read: set[str] = set()

    def definition(self, schema: Any, name: str) -> str | None:
        """Return the type of an entry of `$defs`, or `None` if no other schema has it."""
        return self._names.get(_key(schema, name) or "")

    def whole(self, schema: Any) -> str | None:
        """Return the type of a schema with a title, or of a plain reference, or `None` if no other schema has it."""
        rest = {key: schema[key] for key in schema if key not in {*_BESIDE, "type"}} if is_object(schema) else {}
        referred = _DEFINITION.fullmatch(str(rest.get("$ref"))) if rest.keys() == {"$ref"} else None
        if referred is not None:
            return self.definition(schema, referred[1])
        title = _titled(schema)
        return None if title is None else self._names.get(_key_of(title, schema, schema) or "")


def _titled(schema: Any) -> str | None:
    """Return the title of an object's schema."""
    title: Any = schema.get("title") if is_object(schema) and schema.get("properties") else None
    return title if isinstance(title, str) and title.isidentifier() else None


def _key(schema: Any, name: str) -> str | None:
    """Return the key of an entry of `$defs`, or `None` if it is not an object or has other references."""
    definitions: Any = schema.get("$defs") if is_object(schema) else None
    definition: Any = definitions.get(name) if is_object(definitions) else None
    return _key_of(name, definition, schema) if is_object(definition) and definition.get("properties") else None


def _key_of(name: str, definition: Any, schema: Any) -> str | None:
    """Return a definition and its references as text, or `None` if a target is not in `$defs`."""
    definitions: Any = schema.get("$defs", {})
    parts = {"": json.dumps({key: definition[key] for key in definition if key not in _BESIDE}, sort_keys=True)}
    pending = [parts[""]]
    while pending:
        for reference in _REFERENCE.findall(pending.pop()):
            found = _DEFINITION.fullmatch(reference)
            if found is None or found[1] not in definitions:
                return None
            if found[1] not in parts:
                parts[found[1]] = json.dumps(definitions[found[1]], sort_keys=True)
                pending.append(parts[found[1]])
    return json.dumps([name, schema.get("$schema"), sorted(parts.items())])
