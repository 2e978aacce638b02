"""Types of the JSON Schemas of a contract for models: a type accepts all values of its schema, and often more.

They are the exact types of a schema without the keywords that no class expresses, such as `not`, `if`,
`patternProperties` and limits; a validator makes the exact check at run time. Numbers of an `enum` become plain
numbers: in JSON `1.0` equals `1`, but not `Literal[1]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from mcp_bindgen.ir.constants import with_constants
from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Field,
    Json,
    Map,
    Object,
    Ref,
    Scalar,
    Type,
    Union,
    flattened,
    map_parts,
    references,
    union_of,
)
from mcp_bindgen.json_schema.keywords import edited
from mcp_bindgen.lowering.shapes import ASSERTIONS, STRUCTURE, Alternative, Conj, Document, Shape
from mcp_bindgen.runtime.model.json_types import distinct
from mcp_bindgen.spec.json import is_array, is_json_type, is_object, json_type_of

from .exact import MAX_STEPS, DocumentReader, ExactReader
from .references import Root

_MEMBERS = frozenset({*STRUCTURE["object"], *STRUCTURE["array"]}) - {"required", "propertyNames"}
"""Keywords with the schemas of members and items; alternatives beside them have no classes of their own."""

_TYPELESS = _MEMBERS | {"anyOf", "const", "enum", "oneOf", "required"}
_KEPT = _TYPELESS | {"$ref", "allOf", "type"}
_TYPED = {"$ref", "allOf", "const", "enum", "type"}
"""Keywords of alternatives that need no type of the schema around them."""

_SCALARS = frozenset((Scalar("string"), Scalar("number"), Scalar("boolean"), Scalar("null")))


class TypeReader(DocumentReader):
    """Reader of a schema into types for models.

    Args:
        parent: The reader of all schemas.
        root: The schema.
        name: The name of its definition.
        doc: Its documentation if it has none.
    """

    def __init__(self, parent: ExactReader, root: Root, name: str, doc: str) -> None:
        super().__init__(parent, Document(edited(root.schema, _strip), max_steps=MAX_STEPS), name, root.schema)
        self._root, self._name, self._missing_doc = root, name, doc

    def read(self, name: str) -> Ref:
        """Read the document; its definitions are in the order of the references to them, breadth first."""
        known = dict(self.parent.definitions)
        found = super().read(name)
        made = self.parent.definitions
        order, seen = [name], {*known, name}
        for one in order:  # grows in the loop
            new = [part for part in dict.fromkeys(references(made[one].type)) if part not in seen]
            order += new
            seen.update(new)
        self.parent.definitions = known | {one: made[one] for one in order}
        return found

    def define(self, name: str, type: Type, doc: str, limits: list[str], *, inline: bool = True) -> None:
        """Add a definition with a wide type; that of the schema is a class even without members."""
        is_root, found = name == self._name, _wide(type)
        found = Object((), found.values) if is_root and isinstance(found, Map) else found
        doc = doc or (self._missing_doc if is_root else f"A part of `{self._name}`.")
        super().define(name, found, doc, limits, inline=not is_root)

    def head(self, conj: Conj, top: str) -> Shape:
        """Return the alternatives of a place; no definition is a mere reference to another one."""
        found = super().head(conj, top)
        return self.document.follow(found[0].target) if top and [one.kind for one in found] == ["link"] else found

    def field(self, name: str, wire: str, one: Alternative) -> Field:
        """Return a member, which also states its default."""
        found = super().field(name, wire, one)
        return found if found.required else replace(found, stated=self._default(one.member(wire)))

    def _default(self, conj: Conj) -> Json:
        """Return the first default that is a scalar which the schema at its place accepts, if there is one."""
        for one in conj:
            value = one.schema.get("default") if is_object(one.schema) else None
            if isinstance(value, str | int | float) and self._root.accepts(one.pointer, value):
                whole = isinstance(value, float) and value.is_integer()
                return int(value) if whole else cast(Json, value)
        return None


def is_visible(words: str) -> bool:
    """Return whether a text is visible."""
    return any(char.isprintable() and not char.isspace() for char in words)


def _strip(node: dict[str, Any], found: dict[str, Any]) -> None:
    """Remove the keywords that no class expresses from a schema, and put its documentation into its description."""
    texts = (node.get(word) for word in ("description", "title"))
    words = next((text for text in texts if isinstance(text, str) and is_visible(text)), "")
    found["description"] = with_constants(words, node)
    values = [node["const"]] if "const" in node else node.get("enum", [])
    for word in found.keys() & ASSERTIONS - _KEPT:
        del found[word]
    if any(is_object(value) or is_array(value) for value in values):
        found["type"] = sorted({json_type_of(value) for value in values})
        for word in found.keys() & _TYPELESS:
            del found[word]
    if found.pop("patternProperties", None):
        found.pop("additionalProperties", None)
    if found.keys() & _MEMBERS or "anyOf" in found:
        found.pop("oneOf", None)
    if found.keys() & _MEMBERS:
        found.pop("anyOf", None)
    if "type" in found and (alternatives := found.get("anyOf", found.get("oneOf"))):
        kinds = found.pop("type")  # so that a reference among them stays one
        for part in alternatives:
            if is_object(part) and not part.keys() & _TYPED:
                part["type"] = kinds
    parts = [found, *(part for part in found.get("allOf", ()) if is_object(part))]
    if any("$ref" in part for part in parts) and not any(part.keys() & _TYPELESS for part in parts):
        found.pop("type", None)
    if node.get("nullable") is True:
        found["anyOf"] = [{word: found.pop(word) for word in found.keys() & ASSERTIONS}, {"type": "null"}]


def _wide(type: Type) -> Type:
    """Return a type for models that accepts all values of an exact type."""
    match type:
        case Scalar(kind):
            return Scalar(kind)
        case Const(values):
            numbers: list[Any] = [value for value in values if is_json_type(value, "number")]
            number = Scalar("integer" if all(value % 1 == 0 for value in numbers) else "number")
            others = [Const((value,)) for value in values if not is_json_type(value, "number")]
            return _union([*others, *([number] if numbers else [])])
        case Array(items):
            return Array(_wide(items))
        case Union(members):
            return _union(map(_wide, members))
        case _:
            return map_parts(type, _wide)


def _union(types: Iterable[Type]) -> Type:
    """Return the union of `types`; any JSON if one of them is any JSON, or if there are none, or all kinds.

    Constants become one type. A constant `true` beside numbers becomes any boolean: pydantic would accept 1 for it.
    """
    flat = flattened(types)
    consts = [value for type in flat if isinstance(type, Const) for value in type.values]
    flags = {value for value in consts if isinstance(value, bool)}
    if flags and (len(flags) == 2 or {Scalar("integer"), Scalar("number")} & {*flat}):
        flat.append(Scalar("boolean"))
        consts = [value for value in consts if not isinstance(value, bool)]
    merged = Const(tuple(distinct(consts)))
    flat = [merged if isinstance(type, Const) else type for type in flat if consts or not isinstance(type, Const)]
    is_any = AnyValue() in flat or ({*flat} >= _SCALARS and any(isinstance(type, Array) for type in flat))
    return AnyValue() if is_any or not flat else union_of(flat)
