"""Normal form of JSON Schema: a union of alternatives, each of one type, one level at a time.

A schema at a place is a conjunction of located schemas. `Document.head` turns it into alternatives without `allOf`,
`anyOf`, `oneOf`, `not` and conditions. The schemas of members and items stay conjunctions until they are needed. An
alternative accepts the same values as its schema, or more values and has a reason for it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from mcp_bindgen.json_schema.dialects import draft, modern
from mcp_bindgen.json_schema.keywords import nodes
from mcp_bindgen.json_schema.pointer import join, values_at
from mcp_bindgen.json_schema.references import Outside, Targets
from mcp_bindgen.runtime.model.json_types import is_array, is_object, json_key, same_json

from .codecs import Json
from .rules import Reason, Refused, reason

Schema: TypeAlias = dict[str, Any]

TYPES = ("string", "number", "boolean", "object", "array", "null")

LIMITS: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    "object": ("minProperties", "maxProperties"),
}
"""Keywords that limit values of a type, without those about members and items."""

STRUCTURE: Mapping[str, tuple[str, ...]] = {
    "object": ("properties", "required", "patternProperties", "additionalProperties", "propertyNames"),
    "array": ("prefixItems", "items"),
}
"""Keywords about the members and items of a type."""

KEYWORDS = {type: frozenset(LIMITS.get(type, ()) + STRUCTURE.get(type, ())) for type in TYPES}
KEYWORDS["integer"] = KEYWORDS["number"]
"""Keywords about the values of a type."""

APPLICATORS = (
    *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentRequired"),
    *("dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems"),
)
"""Keywords that hold for values of any type, or depend on other keywords."""

ASSERTIONS = frozenset({"type", "enum", "const", *APPLICATORS}).union(*LIMITS.values(), *STRUCTURE.values())
"""Keywords that reject values."""

FORMATS: Mapping[str, Mapping[str, str]] = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
"""Format that JSON Schema defines -> its entry in `formats.toml`."""

MAX_CASES = 64
"""Maximum of alternatives of a place."""

MAX_STEPS = 2000
"""Maximum of places and of pairs of schemas that lowering a tool looks at: a tool must not hold the event loop up."""


@dataclass(frozen=True)
class Located:
    """A schema and its pointer in the tool."""

    schema: Json
    pointer: str


Conj: TypeAlias = tuple[Located, ...]


@dataclass(frozen=True)
class Alternative:
    """Values of one kind.

    Attributes:
        kind: A JSON type, `integer`, `any`, `values` or `link`.
        pointer: The place of the schema.
        description: Its description.
        limits: Keywords of `LIMITS`.
        members: Property name -> schema.
        required: Names of required members, declared or not.
        patterns: Pattern -> schema of members.
        names: Schema of member names.
        prefix: Schemas of the first items.
        rest: Schema of other members or items; `None` if the source states none.
        values: The constants of kind `values`: null, booleans, numbers and strings.
        target: The pointer of the definition of kind `link`.
        reasons: Rules that make it accept more, or less, than its schema.
    """

    kind: str
    pointer: str
    description: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    members: Mapping[str, Conj] = field(default_factory=dict[str, Conj])
    required: frozenset[str] = frozenset()
    patterns: Mapping[str, Conj] = field(default_factory=dict[str, Conj])
    names: Conj = ()
    prefix: tuple[Conj, ...] = ()
    rest: Conj | None = None
    values: tuple[Any, ...] = ()
    target: str = ""
    reasons: tuple[Reason, ...] = ()

    @property
    def named(self) -> list[str]:
        """Names of declared and of required members."""
        return [*self.members, *sorted(self.required - self.members.keys())]

    def member(self, name: str) -> Conj:
        """Return the schema of a member, named or not."""
        if name in self.members:
            return self.members[name]
        if not self.patterns:
            return self.rest or ()
        from mcp_bindgen.app.validation import matches  # loads the runtime

        matched = tuple(one for pattern, conj in self.patterns.items() if matches(pattern, name) for one in conj)
        return matched or self.rest or ()

    def item(self, index: int) -> Conj:
        """Return the schema of an item."""
        return self.prefix[index] if index < len(self.prefix) else self.rest or ()


Shape: TypeAlias = list[Alternative]


class Document:
    """A JSON Schema and its definitions.

    Args:
        schema: The root, in any dialect.
        pointer: The pointer of the root in the tool.
        max_steps: Maximum of places and of pairs of schemas that are looked at.

    Attributes:
        is_old: Whether its dialect is draft-07 or older: formats are assertions.
    """

    def __init__(self, schema: Schema, pointer: str = "", max_steps: int = MAX_STEPS) -> None:
        self.schema: Schema = modern(schema)
        self.root: Located = Located(self.schema, pointer)
        self._targets = Targets(self.schema)
        self._following: list[str] = []
        self._valid: set[int] = set()
        self.is_old: bool = draft(schema) < 2019
        self._dialect = schema.get("$schema")
        self._loops: dict[str, bool] = {}
        self._steps, self._max_steps = 0, max_steps
        self._expanded: dict[tuple[int, str], tuple[Any, Shape]] = {}

    # --- places ---------------------------------------------------------------------------------------------------

    def resolve(self, reference: Json, pointer: str) -> Located:
        """Return the target of a local reference."""
        source = pointer.removeprefix(self.root.pointer)
        if self._targets.is_in_part(source):
            raise Refused("unsupported", pointer, "a reference below another $id")
        try:
            place = self._targets.place(reference, source)
        except Outside:
            place = None
        except LookupError:
            raise Refused("bad-schema", pointer, f"{reference!r} has no target") from None
        if place is None or (target := self.at(self.root.pointer + place)) is None:
            raise Refused("unsupported", pointer, f"the reference to {reference.partition('#')[0]!r}")
        if not isinstance(target.schema, bool) and id(target.schema) not in self._valid:
            require_valid(target.schema, target.pointer)
            self._valid.add(id(target.schema))
        return target

    def at(self, pointer: str) -> Located | None:
        """Return the schema at a pointer."""
        found = values_at(self.schema, pointer.removeprefix(self.root.pointer))
        return Located(found[0], pointer) if found else None

    def is_recursive(self, target: str) -> bool:
        """Return whether a definition contains itself."""
        if target not in self._loops:
            seen, pending = set[str](), self._links(target)
            while pending and target not in seen:
                if (one := pending.pop()) not in seen:
                    seen.add(one)
                    pending += self._links(one)
            self._loops[target] = target in seen
        return self._loops[target]

    def _links(self, target: str) -> list[str]:
        found = self.at(target)
        inner = nodes(found.schema, target) if found is not None else ()
        return [self.resolve(node["$ref"], place).pointer for place, node in inner if isinstance(node.get("$ref"), str)]

    def count_step(self) -> None:
        """Raise `Refused` once too many places and pairs of schemas have been looked at."""
        self._steps += 1
        if self._steps > self._max_steps:
            raise Refused("limit", self.root.pointer, f"lowering takes more than {self._max_steps} steps")

    # --- normal form ----------------------------------------------------------------------------------------------

    def head(self, conj: Conj) -> Shape:
        """Return the alternatives of a place."""
        found: Shape | None = None
        for one in conj:
            part = self.expand(one)
            found = part if found is None else self.meet(found, part)
        return [Alternative("any", "")] if found is None else found

    def expand(self, one: Located) -> Shape:
        """Return the alternatives of a located schema."""
        schema, pointer = one.schema, one.pointer
        if (known := self._expanded.get((id(schema), pointer))) is not None:
            return known[1]
        found = self._expand(schema, pointer)
        self._expanded[id(schema), pointer] = schema, found
        return found

    def _expand(self, schema: Json, pointer: str) -> Shape:
        if schema is False:
            return []
        if schema is True or not schema.keys() & ASSERTIONS:
            return [Alternative("any", pointer, _description(schema))]
        if "enum" in schema or "const" in schema:
            return self._constants(schema, pointer)
        found = self._typed(schema, pointer)
        if schema.keys().isdisjoint(APPLICATORS):
            return found
        return self._applied(schema, pointer, found)

    def follow(self, target: str) -> Shape:
        """Return the alternatives of a definition."""
        if target in self._following:
            raise Refused("unsupported", target, "a definition that refers only to itself")
        self._following.append(target)
        try:
            found = self.at(target)
            assert found is not None
            return self._without_links(self.expand(found))
        finally:
            self._following.pop()

    def _applied(self, schema: Schema, pointer: str, found: Shape) -> Shape:
        """Return the alternatives that fit the keywords which combine schemas too."""
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                raise Refused("unsupported", join(pointer, keyword), keyword)
        if "$ref" in schema:
            target = self.resolve(schema["$ref"], join(pointer, "$ref")).pointer
            link = Alternative("link", pointer, _description(schema), target=target)
            found = self.meet(found, [link])
        for index, part in enumerate(schema.get("allOf", ())):
            found = self.meet(found, self.expand(Located(part, join(pointer, "allOf", index))))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                place = join(pointer, keyword)
                parts = [Located(part, join(place, index)) for index, part in enumerate(schema[keyword])]
                found = self._union([self.meet(found, self.expand(part)) for part in parts], place, keyword)
        for keyword, test, then, otherwise in _conditions(schema):
            place = join(pointer, keyword)
            if (negated := negation(test)) is None:
                found = noted(found, reason("drop-condition", place, keyword))
            else:
                cases = [{"allOf": [test, then]}, {"allOf": [negated, otherwise]}]
                found = self.meet(found, self.expand(Located({"anyOf": cases}, place)))
        if _is_constants(schema.get("not")):
            found = self._without(found, schema["not"], join(pointer, "not"))
        if "unevaluatedItems" in schema:
            found = noted(found, reason("drop-condition", join(pointer, "unevaluatedItems"), "unevaluatedItems"))
        if schema.get("unevaluatedProperties", True) is not True:
            found = self._unevaluated(schema, join(pointer, "unevaluatedProperties"), found)
        return found

    def _union(self, branches: Sequence[Shape], place: str, keyword: str) -> Shape:
        found = [alternative for branch in branches for alternative in branch]
        pairs = ((left, right) for index, left in enumerate(branches) for right in branches[:index])
        if keyword == "oneOf" and not all(self.apart(*pair) for pair in pairs):
            return noted(found, reason("one-of", place))
        return found

    def _without(self, found: Shape, constants: Schema, place: str) -> Shape:
        """Return the alternatives without some constants."""
        values = self._constants(constants, place)
        if any(one.kind != "values" for one in values):
            return noted(found, reason("drop-condition", place, "not"))
        enum = [value for one in values for value in one.values]
        excluded = Alternative("any", place, limits={"not": {"enum": enum}})
        return self.meet(found, [excluded])

    def _unevaluated(self, source: Schema, place: str, found: Shape) -> Shape:
        schema = source["unevaluatedProperties"]
        if any(one.kind == "any" for one in found):
            found = self.meet(found, [Alternative(type, place) for type in TYPES])
        closed = [
            replace(one, rest=(Located(schema, place),)) if one.kind == "object" and one.rest is None else one
            for one in self._without_links(found)
        ]
        if len([one for one in closed if one.kind == "object"]) > 1:
            closed = noted(closed, reason("close-branches", place))
        if any(not node.keys().isdisjoint(("not", "if", "$ref")) for node in _in_place(source)):
            closed = noted(closed, reason("drop-condition", place, "unevaluatedProperties"))
        return closed

    def _without_links(self, shape: Shape) -> Shape:
        return [one for link in shape for one in (self.follow(link.target) if link.kind == "link" else [link])]

    def _constants(self, schema: Schema, pointer: str) -> Shape:
        """Return the constants that fit all other keywords."""
        values: list[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
        if "type" in schema:
            types = _types(schema["type"])
            values = [value for value in values if any(is_of(type, value) for type in types)]
        if "enum" in schema and "const" in schema:
            values = [value for value in values if same_json(value, schema["const"])]
        unique = {json_key(value): value for value in values}.values()
        description = _description(schema)
        scalars = tuple(value for value in unique if not (is_object(value) or is_array(value)))
        found = [Alternative("values", pointer, description, values=scalars)] if scalars else []
        found += [_constant(value, pointer, description) for value in unique if (is_object(value) or is_array(value))]
        others = {word: value for word, value in schema.items() if word not in ("type", "enum", "const")}
        return self.meet(found, self._expand(others, pointer)) if others.keys() & ASSERTIONS else found

    def _typed(self, schema: Schema, pointer: str) -> Shape:
        """Return an alternative for each type that a schema allows, by the keywords about this type."""
        stated = "type" in schema
        types = _types(schema["type"]) if stated else TYPES
        if not stated and not any(schema.keys() & KEYWORDS[type] for type in types):
            return [Alternative("any", pointer, _description(schema))]
        if "number" in types:
            types = [type for type in types if type != "integer"]
        return [self._of_type(type, schema, pointer, schema.keys() & KEYWORDS[type]) for type in types]

    def _of_type(self, type: str, schema: Schema, pointer: str, keywords: Set[str]) -> Alternative:
        if not keywords:
            return Alternative(type, pointer, _description(schema))
        group = "number" if type == "integer" else type
        limits = {word: schema[word] for word in LIMITS[group] if word in schema}
        if "format" in limits and limits["format"] not in FORMATS:
            del limits["format"]
        if limits.get("uniqueItems") is False:
            del limits["uniqueItems"]
        found = Alternative(type, pointer, _description(schema), limits)
        if type == "object":
            return self._object(found, schema, pointer)
        return _array(found, schema, pointer) if type == "array" else found

    def _object(self, found: Alternative, schema: Schema, pointer: str) -> Alternative:
        def part(*steps: str) -> Located:
            node: Json = schema
            for word in steps:
                node = node[word]
            return Located(node, join(pointer, *steps))

        stated = schema.get("patternProperties", {})
        patterns: dict[str, Conj] = {one: (part("patternProperties", one),) for one in stated}
        rest = (part("additionalProperties"),) if "additionalProperties" in schema else None
        names = (part("propertyNames"),) if "propertyNames" in schema else ()
        found = replace(found, patterns=patterns, rest=rest, names=names)
        members: dict[str, Conj] = {name: (part("properties", name),) for name in schema.get("properties", {})}
        if patterns:
            members = {name: conj + replace(found, rest=None).member(name) for name, conj in members.items()}
        required = [str(name) for name in schema.get("required", ())]
        return replace(found, members=members, required=frozenset(required))

    # --- intersection ---------------------------------------------------------------------------------------------

    def meet(self, left: Shape, right: Shape) -> Shape:
        """Return the alternatives of the values that both shapes accept."""
        self.count_step()
        if len(left) * len(right) > MAX_CASES:
            return noted(left, reason("too-many-cases", (right or left)[0].pointer))
        return [one for a in left for b in right for one in self._meet(a, b)]

    def _meet(self, a: Alternative, b: Alternative) -> Shape:
        if (a.kind == "any" and not a.limits) or (b.kind == "any" and not b.limits):
            kept, other = (b, a) if a.kind == "any" and not a.limits else (a, b)
            return [_joined(kept, other)]
        if "link" in (a.kind, b.kind):
            if a.target == b.target:
                return [a]
            return self.meet(self._without_links([a]), self._without_links([b]))
        if "values" in (a.kind, b.kind):
            known, other = (a, b) if a.kind == "values" else (b, a)
            values = tuple(value for value in known.values if self.accepts(other, value))
            return [_joined(replace(known, values=values), other)] if values else []
        if "any" in (a.kind, b.kind):
            kept, other = (b, a) if a.kind == "any" else (a, b)
            return self._exclude(kept, other)
        kinds = {a.kind, b.kind}
        if kinds != {"integer", "number"} and len(kinds) > 1:
            return []
        return [self._merge(a, b, "integer" if "integer" in kinds else a.kind)]

    def _exclude(self, kept: Alternative, other: Alternative) -> Shape:
        """Return the first alternative without the constants that the second excludes."""
        values: list[Any] = [*kept.limits.get("not", {"enum": []})["enum"], *other.limits["not"]["enum"]]
        values = [value for value in values if kept.kind == "any" or is_of(kept.kind, value)]
        if not values:
            return [_joined(kept, other)]
        if kept.kind in ("boolean", "null"):
            left = tuple(one for one in (None, False, True) if is_of(kept.kind, one) and one not in values)
            return [_joined(replace(kept, kind="values", values=left), other)] if left else []
        return [_joined(replace(kept, limits={**kept.limits, "not": {"enum": values}}), other)]

    def _merge(self, a: Alternative, b: Alternative, kind: str) -> Alternative:
        limits, clashes = dict(a.limits), list[str]()
        for word, value in b.limits.items():
            if word not in limits or limits[word] == value:
                limits[word] = value
            elif word == "not":
                limits[word] = {"enum": [*limits[word]["enum"], *value["enum"]]}
            elif word.startswith(("min", "exclusiveMin")):
                limits[word] = max(limits[word], value)
            elif word.startswith(("max", "exclusiveMax")):
                limits[word] = min(limits[word], value)
            elif word == "multipleOf" and isinstance(value, int) and isinstance(limits[word], int):
                limits[word] = math.lcm(value, limits[word])
            else:
                clashes.append(word)
        members = {name: a.member(name) + b.member(name) for name in [*a.members, *b.members]}
        patterns = {one: conj + (b.rest or ()) for one, conj in a.patterns.items()}
        patterns |= {one: conj + (a.rest or ()) for one, conj in b.patterns.items()}
        if a.patterns and b.patterns:
            clashes.append("patternProperties")
        length = max(len(a.prefix), len(b.prefix))
        merged = replace(
            a,
            kind=kind,
            limits=limits,
            members=members,
            required=a.required | b.required,
            patterns=patterns,
            names=a.names + b.names,
            prefix=tuple(a.item(index) + b.item(index) for index in range(length)),
            rest=None if a.rest is None and b.rest is None else (a.rest or ()) + (b.rest or ()),
        )
        notes = tuple(reason("merge-keyword", b.pointer, word) for word in clashes)
        return _joined(merged, replace(b, reasons=b.reasons + notes))

    # --- questions ------------------------------------------------------------------------------------------------

    def accepts(self, alternative: Alternative, value: Json) -> bool:
        """Return whether an alternative accepts a constant: null, a boolean, a number or a string."""
        if alternative.kind == "values":
            return json_key(value) in map(json_key, alternative.values)
        if alternative.kind == "link":
            return any(self.accepts(one, value) for one in self.follow(alternative.target))
        if alternative.kind == "any":
            return fits(dict(alternative.limits), value)
        if not is_of(alternative.kind, value) or (is_object(value) or is_array(value)):
            return False
        limits = {word: limit for word, limit in alternative.limits.items() if word != "format" or self.is_old}
        if "format" in limits:  # each dialect has its own formats
            limits["$schema"] = self._dialect
        return fits({"type": alternative.kind, **limits}, value)

    def apart(self, left: Shape, right: Shape, depth: int = 4) -> bool:
        """Return whether no value is in both shapes; False if that is not proved."""
        return depth > 0 and all(self._apart(a, b, depth) for a in left for b in right)

    def _apart(self, a: Alternative, b: Alternative, depth: int) -> bool:
        if "link" in (a.kind, b.kind):
            return self.apart(self._without_links([a]), self._without_links([b]), depth - 1)
        if "values" in (a.kind, b.kind):
            known, other = (a, b) if a.kind == "values" else (b, a)
            return not any(self.accepts(other, value) for value in known.values)
        if "any" in (a.kind, b.kind):
            return False
        if a.kind != b.kind and {a.kind, b.kind} != {"integer", "number"}:
            return True
        if a.kind == "object":
            return any(
                self.apart(self.head(a.member(name)), self.head(b.member(name)), depth - 1)
                for name in a.required & b.required
            ) or any(not self.head(y.member(name)) for x, y in ((a, b), (b, a)) for name in x.required)
        if a.kind == "array" and all(one.limits.get("minItems", 0) > 0 for one in (a, b)):
            return self.apart(self.head(a.item(0)), self.head(b.item(0)), depth - 1)
        return any(
            x.limits.get(least, -math.inf) > y.limits.get(most, math.inf)
            for x, y in ((a, b), (b, a))
            for least, most in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))
        )

    # --- examples -------------------------------------------------------------------------------------------------

    def sample(self, conj: Conj, depth: int = 8) -> Any:
        """Return a small accepted value.

        Raises:
            LookupError: None is found.
        """
        for alternative in self.head(conj) if depth else ():
            try:
                return self.sample_of(alternative, depth)
            except LookupError:
                continue
        raise LookupError("no small value is accepted")

    def sample_of(self, one: Alternative, depth: int = 8) -> Any:
        """Return a small value of an alternative; raises `LookupError` if none is found."""
        if one.kind == "link":
            return self.sample((Located(True, "") if (at := self.at(one.target)) is None else at,), depth - 1)
        if one.kind in ("values", "any", "null"):
            return one.values[0] if one.values else None
        if one.kind == "object":
            return {name: self.sample(one.member(name), depth - 1) for name in one.named if name in one.required}
        if one.kind == "array":
            return [self.sample(one.item(index), depth - 1) for index in range(one.limits.get("minItems", 0))]
        schema = {"type": one.kind, **one.limits}
        candidates = _STRINGS if one.kind == "string" else _numbers(one.limits)
        candidates = [*candidates, "a" * min(one.limits.get("minLength", 0), 10_000), True]
        found = next((value for value in candidates if fits(schema, value)), None)
        if found is None:
            raise LookupError("no small value is accepted")
        return found


_STRINGS: Sequence[Any] = (
    *("", "a", "0", "A", "aa", "a-b", "a@example.com", "https://example.com/", "1996-02-28", "1996-02-28T00:00:00Z"),
    *("00:00:00Z", "P1D", "example.com", "192.0.2.1", "2001:db8::1", "00000000-0000-4000-8000-000000000000", "#000000"),
    *("/", "1.0", "1.0.0", "00000000", "abc123", "a/b"),
)


def _numbers(limits: Mapping[str, Any]) -> list[Any]:
    near = [value for word, value in limits.items() if word != "not"]
    return [0, 1, *near, *(value + 1 for value in near), *(value - 1 for value in near), *(value * 2 for value in near)]


def require_valid(schema: Json, pointer: str) -> None:
    """Refuse a document that is no schema of its dialect."""
    import jsonschema_rs

    if not is_object(schema):
        raise Refused("bad-schema", pointer, "it is no object")
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        raise Refused("bad-schema", join(pointer, *error.instance_path), error.message.partition("\n")[0]) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise Refused("bad-schema", pointer, str(error).partition("\n")[0]) from None


def fits(schema: Schema, value: Json) -> bool:
    """Return whether a scalar fits a schema without references; formats are asserted."""
    if schema.keys() <= {"type"}:
        return "type" not in schema or is_of(schema["type"], value)
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
    except ValueError:
        return False


def noted(shape: Shape, *reasons: Reason) -> Shape:
    """Return the alternatives with more reasons."""
    return [replace(one, reasons=one.reasons + reasons) for one in shape]


def is_of(type: str, value: Json) -> bool:
    """Return whether a JSON value is of a type; 1.0 is an integer, and true is no number."""
    if isinstance(value, bool):
        return type == "boolean"
    if isinstance(value, int | float):
        return type == "number" or (type == "integer" and value == int(value))
    return type == {str: "string", dict: "object", list: "array"}.get(value.__class__, "null")


def _joined(kept: Alternative, other: Alternative) -> Alternative:
    if not other.reasons and (kept.description or not other.description):
        return kept if kept.pointer else replace(kept, pointer=other.pointer)
    return replace(kept, description=kept.description or other.description, reasons=kept.reasons + other.reasons)


def _array(found: Alternative, schema: Schema, pointer: str) -> Alternative:
    parts = enumerate(schema.get("prefixItems", ()))
    prefix = tuple((Located(part, join(pointer, "prefixItems", index)),) for index, part in parts)
    rest = (Located(schema["items"], join(pointer, "items")),) if "items" in schema else None
    return replace(found, prefix=prefix, rest=rest)


def _constant(value: Json, pointer: str, description: str = "") -> Alternative:
    """Return the alternative that accepts one object or array."""
    never = (Located(False, pointer),)
    if is_object(value):
        members = {name: (Located({"const": one}, pointer),) for name, one in value.items()}
        return Alternative("object", pointer, description, members=members, required=frozenset(value), rest=never)
    prefix = tuple((Located({"const": one}, pointer),) for one in value)
    limits = {"minItems": len(value), "maxItems": len(value)}
    return Alternative("array", pointer, description, limits, prefix=prefix, rest=never)


def _types(stated: str | list[str]) -> list[str]:
    return [stated] if isinstance(stated, str) else stated


def _description(schema: Json) -> str:
    found = schema.get("description", "") if is_object(schema) else ""
    return found if isinstance(found, str) else ""


def _in_place(schema: Json) -> Iterator[Schema]:
    """Yield a schema and its branches, which hold for the same value."""
    if is_object(schema):
        yield schema
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, ()):
                yield from _in_place(part)


def _is_constants(schema: Json) -> bool:
    return is_object(schema) and bool(words := schema.keys() & ASSERTIONS) and words <= {"enum", "const"}


def _conditions(schema: Schema) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield each condition: its keyword, a test, and the schemas for values that pass and that fail."""
    if "not" in schema and not _is_constants(schema["not"]):
        yield "not", schema["not"], False, True
    if "if" in schema and ("then" in schema or "else" in schema):
        yield "if", schema["if"], schema.get("then", True), schema.get("else", True)
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, needs in schema.get(keyword, {}).items():
            then = {"required": needs} if is_array(needs) else needs
            yield keyword, {"type": "object", "required": [name]}, then, True


def negation(schema: Json) -> Any:
    """Return a schema for the complement, with `not` only beside constants, or None if there is no such form."""
    if isinstance(schema, bool):
        return not schema
    if "enum" in schema or "const" in schema:
        return {"not": schema} if _is_constants(schema) else None
    words = schema.keys() & ASSERTIONS
    parts: list[Any] = []
    for word in words:
        value = schema[word]
        if word == "not":
            parts.append(value)
        elif word == "required":
            parts += [{"type": "object", "properties": {name: False}} for name in value]
        elif word == "properties":
            for name, part in value.items():
                if (negated := negation(part)) is None:
                    return None
                parts.append({"type": "object", "required": [name], "properties": {name: negated}})
        elif word in ("allOf", "anyOf"):
            negated = [negation(part) for part in value]
            if None in negated:
                return None
            parts += negated if word == "allOf" else [{"allOf": negated}]
        elif word == "type":
            types = {value} if isinstance(value, str) else set(value)
            if "integer" in types - {"number"} and "number" not in types:
                return None
            parts.append({"type": [type for type in TYPES if type not in types]})
        else:
            return None
    return {"anyOf": parts} if parts else False
