"""Turn the JSON Schemas of a contract into types. A type accepts all values of its schema, and often more.

Keywords without a type, such as `not`, `if`, `patternProperties` and `pattern`, widen the type; a validator makes the
exact check at run time. Numbers of an `enum` become plain numbers: in JSON `1.0` equals `1`, but not `Literal[1]`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from mcp_bindgen.ir.constants import with_constants
from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Definition,
    Field,
    Json,
    Map,
    Object,
    Ref,
    Scalar,
    Type,
    flattened,
    union_of,
)
from mcp_bindgen.runtime.model.json_types import distinct
from mcp_bindgen.spec.json import JSON_TYPES, is_array, is_object, join, listed, split
from mcp_bindgen.spec.keywords import has_members

from . import names
from .references import Root
from .shared import Shared

_MAX_DEFINITIONS = 2000  # of one schema; further objects become any JSON
_STRUCTURE = ("properties", "patternProperties", "additionalProperties", "items", "prefixItems")
_SAYING = frozenset({*_STRUCTURE, "additionalItems", "anyOf", "const", "enum", "nullable", "oneOf", "required", "type"})
_TYPELESS = _SAYING - {"type"}

Places: TypeAlias = tuple[str, ...]
"""Pointers of schemas that all apply to one value."""


class Reader:
    """Reader of a schema into definitions.

    Args:
        root: The schema.
        name: The name of its definition.
        scope: Scope of the names of further definitions.
        shared: Definitions that several schemas share.
    """

    def __init__(self, root: Root, name: str, scope: names.Scope, shared: Shared) -> None:
        self.root = root
        self.name = name
        self.scope = scope
        self.shared = shared
        shared.read.add(name)
        self.made: dict[tuple[Places, str], str] = {(("",), ""): name}
        self.pending: deque[tuple[Places, str, str]] = deque([(("",), "", name)])
        self.definitions: dict[str, Definition] = {}

    def read(self, doc: str) -> dict[str, Definition]:
        """Return name -> definition of the schema and its parts; `doc` is its documentation if it has none."""
        while self.pending:
            places, part, name = self.pending.popleft()
            schemas = self._expanded(places)
            whole = self._object(schemas, name) if part else self._type(schemas, name, name)
            words = self._doc(places) or (doc if name == self.name else f"A part of `{self.name}`.")
            self.definitions[name] = Definition(name, whole, words, inline=name != self.name)
        return self.definitions

    # --- schemas of a value -------------------------------------------------------------------------------

    def _atoms(self, places: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the places with keywords of their own, and the targets of references, through `allOf`."""
        own: dict[str, None] = {}
        targets: dict[str, None] = {}
        pending = list(places)
        while pending:
            place = pending.pop(0)
            node = self.root.at(place)
            if not is_object(node) or self.root.is_resource(place):
                continue
            target = self.root.targets.get(place)
            if target is not None:
                targets[target] = None
            if _SAYING & node.keys():
                own[place] = None
            pending += [join(place, "allOf", index) for index in range(len(node.get("allOf", ())))]
        return list(own), list(targets)

    def _expanded(self, places: Places) -> Places:
        """Return the places with keywords, through references."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        pending: Sequence[str] = places
        while pending:
            own, targets = self._atoms(pending)
            found |= dict.fromkeys(own)
            pending = [target for target in targets if target not in seen]
            seen.update(pending)
        return tuple(found)

    def _read(self, places: Places, stem: str, kinds: Sequence[str] | None = None) -> Type:
        """Return the type of a value to which all `places` apply."""
        own, targets = self._atoms(places)
        if targets and not any(_TYPELESS & self.root.at(place).keys() for place in own):
            own = []
        if len(targets) == 1 and not own:
            return self._referred(targets[0])
        known = self.made.get((places, ""))
        return Ref(known) if known else self._type(self._expanded(places), stem, kinds=kinds)

    def _referred(self, target: str) -> Type:
        node = self.root.at(target)
        if isinstance(node, bool):
            return AnyValue()
        tokens = split(target)
        is_defined = len(tokens) == 2 and tokens[0] == "$defs"
        known = self.shared.definition(self.root.schema, tokens[1]) if is_defined else None
        if known is not None:
            if known not in self.shared.read:
                self.shared.read.add(known)
                self.pending.append(((target,), "", known))
            self.made[((target,), "")] = known
            return Ref(known)
        member = next((token for token in reversed(split(target)) if not token.startswith("$")), "")
        return self._named((target,), "", names.inner(self.name, member))

    def _named(self, places: Places, part: str, stem: str) -> Type:
        key = (places, part)
        if key not in self.made:
            if len(self.made) >= _MAX_DEFINITIONS:
                return AnyValue()
            self.made[key] = self.scope.claim(stem)
            self.pending.append((*key, self.made[key]))
        return Ref(self.made[key])

    # --- types ------------------------------------------------------------------------------------------------

    def _type(self, places: Places, stem: str, top: str = "", kinds: Sequence[str] | None = None) -> Type:
        """Return the type of a value to which the plain schemas at `places` apply.

        Args:
            places: The schemas.
            stem: Base of the names of objects in it.
            top: Name of the definition, if the type is a definition.
            kinds: Possible JSON types.
        """
        nodes = [self.root.at(place) for place in places]
        for node in nodes:
            kinds = _meet(kinds, node.get("type"))
        nullable = any(node.get("nullable") is True for node in nodes)
        found = self._plain(places, nodes, stem, "" if nullable else top, kinds)
        return _union([found, Scalar("null")]) if nullable else found

    def _plain(
        self, places: Places, nodes: list[dict[str, Any]], stem: str, top: str, kinds: Sequence[str] | None
    ) -> Type:
        values = [[node["const"]] if "const" in node else node["enum"] for node in nodes if {"const", "enum"} & {*node}]
        if values:
            return _values(min(values, key=len), kinds)
        if not any(keyword in node for node in nodes for keyword in _STRUCTURE):
            for place, node in zip(places, nodes, strict=True):
                keyword = "anyOf" if "anyOf" in node else "oneOf"
                if keyword in node:
                    option = f"{top}Option" if top else stem
                    return self._alternatives(join(place, keyword), len(node[keyword]), option, kinds)
        if kinds is None:
            return AnyValue()
        if top and list(kinds) == ["object"] and (top == self.name or any(map(has_members, nodes))):
            return self._object(places, top)
        return _union([self._single(kind, places, nodes, stem, top) for kind in kinds])

    def _alternatives(self, place: str, count: int, stem: str, kinds: Sequence[str] | None) -> Type:
        places = [join(place, index) for index in range(count)]
        inline = [one for one in places if is_object(node := self.root.at(one)) and has_members(node)]
        numbers = {one: number for number, one in enumerate(inline, 1)} if len(inline) > 1 else {}
        return _union([self._read((one,), f"{stem}{numbers.get(one, '')}", kinds) for one in places])

    def _single(self, kind: str, places: Places, nodes: list[dict[str, Any]], stem: str, top: str) -> Type:
        match kind:
            case "array":
                return Array(self._items(places, nodes, f"{stem}Item" if top else stem))
            case "object":
                if not any(map(has_members, nodes)):
                    extra = self._extra(places, nodes, f"{stem}Value" if top else stem)
                    return Map(AnyValue(implied=True) if extra is None else extra)
                alone = not top and all(node.get("type") == "object" and "nullable" not in node for node in nodes)
                return self._named(places, "" if alone else "object", f"{stem}Value" if top else stem)
            case "string" | "integer" | "number" | "boolean" | "null":
                return Scalar(kind)
            case _:
                return AnyValue()

    def _items(self, places: Places, nodes: list[dict[str, Any]], stem: str) -> Type:
        for place, node in zip(places, nodes, strict=True):
            if is_array(node.get("prefixItems")):
                types = [self._read((join(place, "prefixItems", n),), stem) for n in range(len(node["prefixItems"]))]
                if node.get("items", True) is not False:
                    types.append(self._read((join(place, "items"),), stem) if "items" in node else AnyValue())
                return _union(types)
        several = tuple(
            join(place, "items") for place, node in zip(places, nodes, strict=True) if is_object(node.get("items"))
        )
        return self._read(several, stem) if several else AnyValue()

    def _extra(self, places: Places, nodes: list[dict[str, Any]], stem: str) -> Type | None:
        """Return the type of unnamed members, or `None` if they are not allowed."""
        found: Type = AnyValue(implied=True)
        for place, node in zip(places, nodes, strict=True):
            if "additionalProperties" not in node or node.get("patternProperties"):
                continue
            if node["additionalProperties"] is False:
                return None
            if found == AnyValue():
                found = self._read((join(place, "additionalProperties"),), stem)
        return found

    # --- objects ----------------------------------------------------------------------------------------------

    def _object(self, places: Places, name: str) -> Object:
        nodes = [self.root.at(place) for place in places]
        required = dict.fromkeys(wire for node in nodes for wire in node.get("required", ()) if isinstance(wire, str))
        members: dict[str, list[str]] = {}
        for place, node in zip(places, nodes, strict=True):
            for wire in node.get("properties", {}):
                members.setdefault(wire, []).append(join(place, "properties", wire))
        for wire in required:
            members.setdefault(wire, [])
        extra = self._extra(places, nodes, names.inner(name, "extra"))
        return Object(
            tuple(
                self._field(wire, tuple(found), wire in required, names.inner(name, wire))
                if found
                else Field(wire, AnyValue() if extra is None else extra, wire in required)
                for wire, found in members.items()
            ),
            extra,
        )

    def _field(self, wire: str, places: Places, required: bool, stem: str) -> Field:
        type = self._read(places, stem)
        nodes = [(place, self.root.at(place)) for place in places]
        defaults = [(place, node["default"]) for place, node in nodes if is_object(node) and "default" in node]
        stated = None if required else self._default(defaults)
        fallback = json.dumps(defaults[0][1]) if defaults else ""
        return Field(wire, type, required, stated, self._doc(places), fallback)

    def _default(self, defaults: Sequence[tuple[str, Any]]) -> Json:
        """Return the first default that is a scalar which the schema at its place accepts, if there is one."""
        for place, value in defaults:
            if isinstance(value, str | int | float) and self.root.accepts(place, value):
                whole = isinstance(value, float) and value.is_integer()
                return int(value) if whole else cast(Json, value)
        return None

    def _doc(self, places: Places) -> str:
        for node in map(self.root.at, places):
            for keyword in ("description", "title"):
                if is_object(node) and isinstance(words := node.get(keyword), str) and is_visible(words):
                    return with_constants(words, node)
        return next(filter(is_visible, (with_constants("", node) for node in map(self.root.at, places))), "")


def is_visible(words: str) -> bool:
    """Return whether a text is visible."""
    return any(char.isprintable() and not char.isspace() for char in words)


def _meet(kinds: Sequence[str] | None, stated: Any) -> Sequence[str] | None:
    """Return the JSON types in both `kinds` and the value of a `type`."""
    if stated is None:
        return kinds
    names = listed(stated)
    names = [kind for kind in names if kind in JSON_TYPES and not (kind == "integer" and "number" in names)]
    if kinds is None:
        return names
    both = [kind for kind in kinds if kind in names or (kind == "integer" and "number" in names)]
    return [*both, "integer"] if "number" in kinds and "integer" in names else both


def _values(values: list[Any], kinds: Sequence[str] | None) -> Type:
    """Return the type of a few values."""
    texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    flags = tuple(dict.fromkeys(value for value in values if isinstance(value, bool)))
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    types: list[Type] = []
    if texts and (kinds is None or "string" in kinds):
        types.append(Const(texts))
    if flags:
        types.append(Scalar("boolean") if len(flags) == 2 else Const(flags))
    if numbers:
        types.append(Scalar("integer" if all(number % 1 == 0 for number in numbers) else "number"))
    if None in values:
        types.append(Scalar("null"))
    if any(map(is_array, values)):
        types.append(Array(AnyValue()))
    if any(map(is_object, values)):
        types.append(Map(AnyValue()))
    return _union(types)


def _union(types: Iterable[Type]) -> Type:
    """Return the union of `types`; any JSON if one of them is any JSON, or if there are none.

    Constants become one type. A constant `true` beside numbers becomes any boolean: pydantic would accept 1 for it.
    """
    flat = flattened(types)
    consts = [value for type in flat if isinstance(type, Const) for value in type.values]
    if any(isinstance(type, Scalar) and type.kind in ("integer", "number") for type in flat):
        flat += [Scalar("boolean")] if any(isinstance(value, bool) for value in consts) else []
        consts = [value for value in consts if not isinstance(value, bool)]
    merged = Const(tuple(distinct(consts)))
    flat = [merged if isinstance(type, Const) else type for type in flat if consts or not isinstance(type, Const)]
    return AnyValue() if not flat or AnyValue() in flat else union_of(flat)
