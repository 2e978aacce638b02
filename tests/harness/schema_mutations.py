"""Small changes of real schemas with the expected findings of a comparison: rules, subjects and impacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from mcp_bindgen.ir.model import Ref
from mcp_bindgen.ir.naming import inline_name
from tests.harness.commands import shuffled
from tests.harness.schema_locations import FIXED, ROLES, UNTOUCHED, Definitions, Place, Places, at, named_in, piece, put
from tests.harness.small_schemas import Schema, message, record, ref
from tests.harness.small_schemas import union as union_of

Edit = Callable[[Schema, Random], Schema | None]
"""Function from a schema to the edited schema, or None if the edit does not apply."""

MIRRORED = {
    "field-added-optional": "field-removed-optional",
    "field-added-required": "field-removed-required",
    "field-became-required": "field-became-optional",
    "type-narrowed": "type-widened",
    "became-non-nullable": "became-nullable",
    "number-to-integer": "integer-to-number",
    "enum-value-removed": "enum-value-added",
    "const-added": "const-removed",
    "union-member-removed": "union-member-added",
    "constraint-tightened": "constraint-loosened",
    "additional-properties-closed": "additional-properties-opened",
    "capability-added": "capability-removed",
    "request-method-added": "request-method-removed",
    "notification-added": "notification-removed",
    "message-direction-added": "message-direction-removed",
    "error-code-added": "error-code-removed",
    "definition-added": "definition-removed",
    "ref-extracted": "ref-inlined",
    "field-opened": "field-closed",
}
MIRRORED |= {there: here for here, there in MIRRORED.items()}

STRUCTURE = frozenset({"definition-added", "definition-removed", "ref-extracted", "ref-inlined"})
"""Rules about the notation of a schema; they never affect the wire."""


@dataclass(frozen=True)
class Expected:
    """One expected finding, with alternatives for its rule and subject."""

    rules: frozenset[str]
    subjects: frozenset[str]

    def mirrored(self) -> Expected:
        """Return the finding of the reversed comparison."""
        return replace(self, rules=frozenset(MIRRORED.get(rule, rule) for rule in self.rules))


@dataclass(frozen=True)
class Mutation:
    """Two schemas that differ by one change.

    Attributes:
        kind: The kind of change.
        place: The place of the change.
        old: Definitions before the change.
        new: Definitions after the change.
        expected: The expected findings; no other finding is allowed, except tolerated ones.
        tolerated: Rules of additional findings that do not affect the wire.
        definition: The changed definition, if its values show the change.
        semantics: Facts of `semantics.toml` that only the new schema has.
        documented: True if changes of descriptions count.
        impacts: True if the table of impacts applies without exceptions.
    """

    kind: str
    place: str
    old: Definitions
    new: Definitions
    expected: tuple[Expected, ...] = ()
    tolerated: frozenset[str] = frozenset()
    definition: str = ""
    semantics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    documented: bool = False
    impacts: bool = True

    def reversed(self) -> Mutation:
        """Return the mutation in the opposite direction."""
        return replace(
            self,
            kind=f"{self.kind}, backwards",
            old=self.new,
            new=self.old,
            expected=tuple(expected.mirrored() for expected in self.expected),
            tolerated=frozenset(MIRRORED.get(rule, rule) for rule in self.tolerated),
        )


# --- edits of one schema -----------------------------------------------------------------------------------------

PLAIN = ("string", "integer", "number", "boolean")
_OTHER = {"string": "integer", "integer": "string", "number": "boolean", "boolean": "string"}


def _kind(schema: Schema) -> str:
    """Return the type of an unrestricted scalar, or an empty string."""
    return schema["type"] if set(schema) == {"type"} and schema["type"] in PLAIN else ""


def widened(schema: Schema, random: Random) -> Schema | None:
    if kind := _kind(schema):
        more = random.choice([other for other in PLAIN if other != kind and {other, kind} != {"integer", "number"}])
        return {"type": [kind, more]}
    return None


def freed(schema: Schema, random: Random) -> Schema | None:
    return {} if _kind(schema) else None


def changed(schema: Schema, random: Random) -> Schema | None:
    return {"type": _OTHER[kind]} if (kind := _kind(schema)) else None


def listed(schema: Schema, random: Random) -> Schema | None:
    return {"type": "array", "items": schema} if _kind(schema) else None


def unlisted(schema: Schema, random: Random) -> Schema | None:
    return {"type": "boolean"} if schema.get("type") == "array" else None


def unreferred(schema: Schema, random: Random) -> Schema | None:
    plain = "$ref" in schema and schema["$ref"].rpartition("/")[2] not in UNTOUCHED
    return {"type": "boolean"} if plain else None


def nullable(schema: Schema, random: Random) -> Schema | None:
    if _kind(schema):
        return {"type": [schema["type"], "null"]}
    if (
        schema.get("type") in ("string", "integer", "number", "array")
        and "enum" not in schema
        and "const" not in schema
    ):
        return {**schema, "type": [schema["type"], "null"]} if schema["type"] != "array" else _or_null(schema)
    fits = "$ref" in schema and schema["$ref"].rpartition("/")[2] not in UNTOUCHED
    return _or_null(schema) if fits or schema.get("properties") or "enum" in schema else None


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def whole(schema: Schema, random: Random) -> Schema | None:
    return {**schema, "type": "integer"} if schema.get("type") == "number" and "const" not in schema else None


def fractional(schema: Schema, random: Random) -> Schema | None:
    return {**schema, "type": "number"} if schema.get("type") == "integer" and "const" not in schema else None


def fixed(schema: Schema, random: Random) -> Schema | None:
    return {"const": "fixed", "type": "string"} if _kind(schema) == "string" else None


def unfixed(schema: Schema, random: Random) -> Schema | None:
    return {"type": "string"} if isinstance(schema.get("const"), str) else None


def fixed_otherwise(schema: Schema, random: Random) -> Schema | None:
    return {**schema, "const": f"{schema['const']}X"} if isinstance(schema.get("const"), str) else None


def chosen(schema: Schema, random: Random) -> Schema | None:
    return {"enum": ["one", "two"], "type": "string"} if _kind(schema) == "string" else None


def unchosen(schema: Schema, random: Random) -> Schema | None:
    return {"type": "string"} if "enum" in schema else None


def fixed_or_other(schema: Schema, random: Random) -> Schema | None:
    return {"enum": [schema["const"], "zz"], "type": "string"} if isinstance(schema.get("const"), str) else None


def value_added(schema: Schema, random: Random) -> Schema | None:
    return {**schema, "enum": [*schema["enum"], "zz"]} if "enum" in schema else None


def value_dropped(schema: Schema, random: Random) -> Schema | None:
    if len(schema.get("enum", ())) < 3:
        return None
    gone = random.choice(schema["enum"])
    return {**schema, "enum": [value for value in schema["enum"] if value != gone]}


def member_dropped(schema: Schema, random: Random) -> Schema | None:
    if len(schema.get("anyOf", ())) < 3:
        return None
    index = random.randrange(len(schema["anyOf"]))
    return {**schema, "anyOf": schema["anyOf"][:index] + schema["anyOf"][index + 1 :]}


def bounded(schema: Schema, random: Random) -> Schema | None:
    keyword, value = {
        "string": ("maxLength", 5),
        "integer": ("minimum", 10),
        "number": ("maximum", 10),
        "array": ("maxItems", 1),
    }.get(str(schema.get("type")), ("", 0))
    fits = keyword and keyword not in schema and "enum" not in schema and "const" not in schema
    return {**schema, keyword: value} if fits else None


def bound_moved(schema: Schema, random: Random) -> Schema | None:
    if "maximum" in schema:
        return {**schema, "maximum": schema["maximum"] / 2}
    if "minimum" in schema:
        return {**schema, "minimum": schema["minimum"] + 1}
    return {**schema, "maxItems": schema["maxItems"] - 1} if "maxItems" in schema else None


def patterned(schema: Schema, random: Random) -> Schema | None:
    return {"type": "string", "pattern": "^[a-z]*$"} if _kind(schema) == "string" else None


def formatted(schema: Schema, random: Random) -> Schema | None:
    """A format beside a constant has no effect."""
    fits = schema.get("type") == "string" and set(schema) <= {"type", "format"}
    return {**schema, "format": "hostname"} if fits else None


def unformatted(schema: Schema, random: Random) -> Schema | None:
    return {"type": "string"} if set(schema) == {"type", "format"} else None


def defaulted(schema: Schema, random: Random) -> Schema | None:
    default = {"string": "x", "integer": 1, "number": 1, "boolean": True}.get(_kind(schema))
    return None if default is None else {**schema, "default": default}


def closed(schema: Schema, random: Random) -> Schema | None:
    fits = schema.get("properties") and schema.get("additionalProperties", {}) in ({}, True)
    return {**schema, "additionalProperties": False} if fits else None


def _plain_map(schema: Schema) -> bool:
    return schema.get("type") == "object" and not schema.get("properties")


def map_narrowed(schema: Schema, random: Random) -> Schema | None:
    fits = _plain_map(schema) and schema.get("additionalProperties", True) in ({}, True)
    return {"type": "object", "additionalProperties": {"type": "string"}} if fits else None


def add_optional(schema: Schema, random: Random) -> Schema | None:
    return _added(schema, random, [])


def add_required(schema: Schema, random: Random) -> Schema | None:
    return _added(schema, random, ["zzField"])


def _added(schema: Schema, random: Random, required: list[str]) -> Schema | None:
    if not schema.get("properties"):
        return None
    kind = random.choice(PLAIN)
    properties = {**schema["properties"], "zzField": {"type": kind}}
    return {**schema, "properties": properties, "required": [*schema.get("required", ()), *required]}


ANY = frozenset({"type-widened", "union-member-added"})
LESS = frozenset({"type-narrowed", "union-member-removed"})

NODE_EDITS: dict[str, tuple[Edit, frozenset[str], str]] = {
    "type widened": (widened, ANY, ""),
    "type freed": (freed, frozenset({"type-widened"}), ""),
    "type changed": (changed, frozenset({"type-changed"}), ""),
    "made a list": (listed, frozenset({"type-changed"}), ""),
    "list replaced": (unlisted, frozenset({"type-changed"}), ""),
    "reference replaced": (unreferred, frozenset({"type-changed"}), ""),
    "made nullable": (nullable, frozenset({"became-nullable"}), ""),
    "number to integer": (whole, frozenset({"number-to-integer"}), ""),
    "integer to number": (fractional, frozenset({"integer-to-number"}), ""),
    "const added": (fixed, frozenset({"const-added"}), ""),
    "const removed": (unfixed, frozenset({"const-removed"}), ""),
    "const changed": (fixed_otherwise, frozenset({"const-changed"}), ""),
    "const became enum": (fixed_or_other, frozenset({"enum-value-added"}), ""),
    "enum instead of string": (chosen, frozenset({"type-narrowed"}), ""),
    "string instead of enum": (unchosen, frozenset({"type-widened"}), ""),
    "enum value added": (value_added, frozenset({"enum-value-added"}), ""),
    "enum value dropped": (value_dropped, frozenset({"enum-value-removed"}), ""),
    "bound added": (bounded, frozenset({"constraint-tightened"}), ""),
    "bound moved": (bound_moved, frozenset({"constraint-tightened"}), ""),
    "pattern added": (patterned, frozenset({"constraint-tightened"}), ""),
    "format added": (formatted, frozenset({"format-changed"}), ""),
    "format removed": (unformatted, frozenset({"format-changed"}), ""),
    "default added": (defaulted, frozenset({"default-changed"}), ""),
    "closed": (closed, frozenset({"additional-properties-closed"}), ""),
    "map narrowed": (map_narrowed, frozenset({"type-narrowed"}), "{}"),
}
"""Kind -> edit, its rules, and the suffix of the subject."""


def node_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that replace the schema of one place."""
    for place in places.nodes:
        schema = at(places.definitions[place.definition], place.path)
        if places.is_part(place):
            continue
        for kind, (edit, rules, ending) in NODE_EDITS.items():
            after = edit(schema, random)
            if after is None or (kind == "made nullable" and not place.path):
                continue
            if kind == "default added" and place.path[-2:-1] != ("properties",):
                continue  # a default only matters for optional members
            whole = place.below(called=[ending])
            yield one(kind, places, place, after, rules, whole.subjects)
        if (after := patterned(schema, random)) is not None:
            rules = frozenset({"pattern-changed"})
            other = one("pattern changed", places, place, {**after, "pattern": "^[A-Z]*$"}, rules, place.subjects)
            yield replace(other, old=put(places.definitions, place, after))
        if (after := member_dropped(schema, random)) is not None:
            (gone,) = [member for member in schema["anyOf"] if member not in after["anyOf"]]
            name = gone["$ref"].rpartition("/")[2] if "$ref" in gone else "*"
            where = place.below(called=[f"|{name}"])
            rules = frozenset({"union-member-removed"})
            yield one("union member dropped", places, place, after, rules, where.subjects, impacts=name != "*")


def field_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that add, remove, require or relax a member of an object."""
    for place in places.nodes:
        schema = at(places.definitions[place.definition], place.path)
        if not schema.get("properties") or places.is_part(place):
            continue
        capability = places.is_capability(place)
        new = place.below(called=[".zzField"]).subjects
        is_open = schema.get("additionalProperties") in (True, {})
        added = frozenset({"capability-added" if capability else _optional("added", "zzField", is_open)})
        after = add_optional(schema, random)
        assert after is not None
        yield one("optional field added", places, place, after, added, new)
        if not capability:
            after = add_required(schema, random)
            assert after is not None
            rules = frozenset({"field-added-required"})
            yield one("required field added", places, place, after, rules, new)
        fields = [name for name in schema["properties"] if not (name in FIXED and "method" in schema["properties"])]
        for name in fields:
            subjects = place.below(called=piece(name)).subjects
            required = name in schema.get("required", ())
            others = [known for known in schema.get("required", ()) if known != name]
            properties = {known: child for known, child in schema["properties"].items() if known != name}
            after = {**schema, "properties": properties, "required": others}
            if not (place.definition in places.errors and name in ("error", "code")):  # these members define an error
                rule = "field-removed-required" if required else _optional("removed", name, is_open)
                rules = frozenset({"capability-removed" if capability else rule})
                yield one("field removed", places, place, after, rules, subjects)
                if "additionalProperties" not in schema and "/" not in name and not capability:
                    rules = frozenset({"field-opened"})
                    opened = {**after, "additionalProperties": {}}
                    yield one("field opened", places, place, opened, rules, subjects, impacts=False)
            if capability:
                continue
            after = {**schema, "required": others if required else [*others, name]}
            rules = frozenset({"field-became-optional" if required else "field-became-required"})
            yield one("required or not", places, place, after, rules, subjects)


def _optional(how: str, name: str, is_open: bool) -> str:
    """Return the rule for an optional member that is added or removed; an open object accepts it in either case."""
    return (
        {"added": "field-closed", "removed": "field-opened"}[how]
        if is_open and "/" not in name
        else (f"field-{how}-optional")
    )


def part_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield changes of definitions inside an `allOf`. The model copies it into each object, so all of them change."""
    for name, holders in places.parts.items():
        schema = places.definitions[name]
        if not schema.get("properties"):
            continue
        changed = {name, *holders}
        for kind, edit, rule in (
            ("part grew", add_optional, "field-added-optional"),
            ("part demands more", add_required, "field-added-required"),
        ):
            after = edit(schema, random)
            assert after is not None
            found = tuple(
                Expected(
                    frozenset({_optional("added", "zzField", is_open) if edit is add_optional else rule}),
                    frozenset(f"{subject}{via}.zzField" for subject in places.subjects(owner)),
                )
                for owner in sorted(changed)
                for via, is_open in _ways(places, owner, name)
            )
            yield Mutation(kind, name, places.definitions, {**places.definitions, name: after}, found)


def _ways(places: Places, owner: str, part: str) -> list[tuple[str, bool]]:
    """Return where an object includes `part`: the suffix of the subject, and True if the object is declared open."""

    def is_open(schema: Schema) -> bool:
        parts = [schema, *(known for name, known in places.definitions.items() if ref(name) in schema.get("allOf", ()))]
        return any(one.get("additionalProperties") in (True, {}) for one in parts)

    schema = places.definitions[owner]
    below = [
        ("".join(piece(name)[:1]), is_open(child))
        for name, child in schema.get("properties", {}).items()
        if ref(part) in child.get("allOf", ())
    ]
    return below or [("", is_open(schema))]


def move_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that move a member into an object beside it."""
    for place in places.nodes:
        schema = at(places.definitions[place.definition], place.path)
        if places.is_part(place) or places.is_capability(place) or place.definition in places.errors:
            continue
        for inner, child in schema.get("properties", {}).items():
            if not (isinstance(child, dict) and child.get("properties")):
                continue
            for name, moved in schema["properties"].items():
                if name in (inner, *FIXED, *child["properties"]) or name in schema.get("required", ()):
                    continue
                rest = {known: other for known, other in schema["properties"].items() if known != name}
                grown = {**child, "properties": {**child["properties"], name: moved}}
                after = {**schema, "properties": {**rest, inner: grown}}
                there = place.below(called=piece(inner)).below(called=piece(name)).subjects
                rules = frozenset({"field-moved"})
                subjects = there | place.below(called=piece(name)).subjects
                yield one("field moved", places, place, after, rules, subjects)


def rename_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that rename a member to a similar name."""
    for place in places.nodes:
        schema = at(places.definitions[place.definition], place.path)
        if places.is_part(place) or places.is_capability(place) or place.definition in places.errors:
            continue
        for name in schema.get("properties", {}):
            other = f"new{name[:1].upper()}{name[1:]}"
            if not name.isalpha() or (name in FIXED and "method" in schema["properties"]):
                continue
            if name == "params" and not place.path:
                continue  # the name identifies the params
            properties = {other if known == name else known: child for known, child in schema["properties"].items()}
            required = [other if known == name else known for known in schema.get("required", ())]
            after = {**schema, "properties": properties, "required": required}
            subjects = place.below(called=piece(name)).subjects | place.below(called=piece(other)).subjects
            yield one("field renamed", places, place, after, frozenset({"field-renamed"}), subjects)


def one(
    kind: str,
    places: Places,
    place: Place,
    after: Schema,
    rules: frozenset[str],
    subjects: frozenset[str],
    *,
    impacts: bool = True,
) -> Mutation:
    """Return a mutation of one place with one expected finding."""
    return Mutation(
        kind,
        str(place),
        places.definitions,
        put(places.definitions, place, after),
        (Expected(rules, subjects),),
        definition=place.definition,
        impacts=impacts,
    )


# --- messages, definitions, errors --------------------------------------------------------------------------------


def _grown(definitions: Definitions, name: str, *members: str) -> dict[str, Schema]:
    """Return definitions with more members in a union; an inlined union of one member is expanded first."""
    known = definitions.get(name, {"anyOf": []})
    if "anyOf" not in known:
        method = known["properties"]["method"]["const"]
        (inlined,) = [
            other for other, schema in definitions.items() if other not in ROLES and _method(schema) == method
        ]
        known = union_of(inlined)
    return {**definitions, name: {"anyOf": [*known["anyOf"], *(ref(member) for member in members)]}}


def _shrunk(definitions: Definitions, name: str, member: str) -> dict[str, Schema]:
    rest = [option for option in definitions[name]["anyOf"] if option != ref(member)]
    return {**definitions, name: {"anyOf": rest}}


def _method(schema: Schema) -> str | None:
    method = schema.get("properties", {}).get("method", {})
    return method.get("const") if isinstance(method, dict) else None


def _found(rule: str, *subjects: str) -> Expected:
    return Expected(frozenset({rule}), frozenset(subjects))


WAYS: dict[str, str] = {"Client": "client->server", "Server": "server->client"}


def message_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that add, remove or redirect messages."""
    definitions = places.definitions
    only = frozenset({"definition-added"})
    for number in range(4):
        for role, way in WAYS.items():
            method = f"zz/do{number}"
            params = [None, record(count={"type": "integer"}), record("name", name={"type": "string"})][number % 3]
            more: dict[str, Schema] = {
                "ZzDoRequest": message(method, params),
                "ZzDoResult": record("done", done={"type": "boolean"}),
            }
            if f"{role}Request" in definitions:
                after = _grown({**definitions, **more}, f"{role}Request", "ZzDoRequest")
                found = _found("request-method-added", f"{way} request {method}")
                yield Mutation("request added", method, definitions, after, (found,), only)
            method = f"notifications/zz/done{number}"
            after = _grown(
                {**definitions, "ZzDoneNotification": message(method, params)},
                f"{role}Notification",
                "ZzDoneNotification",
            )
            found = _found("notification-added", f"{way} notification {method}")
            yield Mutation("notification added", method, definitions, after, (found,), only)
    yield from _removals(places)
    yield from _directions(places)
    yield from _carriers(places)


def _removals(places: Places) -> Iterator[Mutation]:
    for method in places.protocol.methods:
        name = method.definition
        unions = [user for user in places.users[name] if user in ROLES]
        inlined = any(_method(places.definitions.get(role, {})) == method.name for role in ROLES)
        if method.carrier == "embedded" or places.users[name] - ROLES or not unions or inlined:
            continue  # other definitions refer to it, too
        after: dict[str, Schema] = dict(places.definitions)
        for role in unions:
            after = _shrunk(after, role, name)
        after = {known: schema for known, schema in after.items() if known != name and schema != {"anyOf": []}}
        rule = "request-method-removed" if method.kind == "request" else "notification-removed"
        ways = [WAYS[sender.capitalize()] for sender in method.senders]
        found = tuple(_found(rule, f"{way} {method.kind} {method.name}") for way in ways)
        yield Mutation(
            "message removed", method.name, places.definitions, after, found, frozenset({"definition-removed"})
        )


def _directions(places: Places) -> Iterator[Mutation]:
    for method in places.protocol.methods:
        if method.carrier == "embedded" or len(method.senders) == 2:
            continue
        other = "Server" if method.senders[0] == "client" else "Client"
        role = f"{other}{method.kind.capitalize()}"
        if role not in places.definitions:
            continue
        after = _grown(places.definitions, role, method.definition)
        found = _found("message-direction-added", f"{WAYS[other]} {method.kind} {method.name}")
        yield Mutation("direction added", method.name, places.definitions, after, (found,))


def _carriers(places: Places) -> Iterator[Mutation]:
    for method in places.protocol.methods:
        if method.carrier != "embedded":
            continue
        after = _grown(
            _shrunk(places.definitions, "InputRequest", method.definition), "ServerRequest", method.definition
        )
        found = _found("message-carrier-changed", f"server->client request {method.name}")
        only = frozenset({"definition-added"})  # the role union
        yield Mutation("carrier changed", method.name, places.definitions, after, (found,), only)


def error_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that add or renumber error codes."""
    definitions = places.definitions
    for number in range(-32050, -32047):
        wrong = record("code message", code={"const": number, "type": "integer"}, message={"type": "string"})
        found = _found("error-code-added", f"{number} ZzWrong")
        only = frozenset({"definition-added"})
        yield Mutation(
            "error code added", str(number), definitions, {**definitions, "ZzWrongError": wrong}, (found,), only
        )
        moved = {**definitions, "ZzWrongError": record("code", code={"const": number - 10, "type": "integer"})}
        base = {**definitions, "ZzWrongError": record("code", code={"const": number, "type": "integer"})}
        found = _found("error-code-renumbered", f"{number} ZzWrong", f"{number - 10} ZzWrong", "ZzWrong")
        yield Mutation("error code renumbered", str(number), base, moved, (found,))


def definition_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations that add or rename definitions."""
    definitions = places.definitions
    special = _special(places)
    for number in range(4):
        shape = record("zz", zz={"type": PLAIN[number]}, yy={"type": "array", "items": {"type": "string"}})
        found = _found("definition-added", "ZzThing")
        yield Mutation("definition added", str(number), definitions, {**definitions, "ZzThing": shape}, (found,))
    for name in definitions:
        if name in special or name in UNTOUCHED or not places.users[name]:
            continue
        renamed = "Zz" + name
        after = {
            (renamed if known == name else known): _rewritten(schema, name, renamed)
            for known, schema in definitions.items()
        }
        found = _found("definition-renamed", name, renamed)
        yield Mutation("definition renamed", name, definitions, after, (found,))


def _special(places: Places) -> set[str]:
    """Return definitions whose names have a meaning in the protocol."""
    bound = {"ClientCapabilities", "ServerCapabilities"}
    for method in places.protocol.methods:
        bound.add(method.definition)
        answers = (method.result, *method.alternatives)
        bound |= {answer.name for answer in answers if isinstance(answer, Ref)}
    bound |= places.errors | places.notices
    return bound | {name for name in places.definitions if name.endswith("Response")}


def _rewritten(node: Any, name: str, other: str) -> Any:
    if isinstance(node, dict):
        if node == ref(name):
            return ref(other)
        return {key: _rewritten(child, name, other) for key, child in node.items()}
    return [_rewritten(child, name, other) for child in node] if isinstance(node, list) else node


def word_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield mutations of descriptions and deprecation notices."""
    for name, schema in places.definitions.items():
        if name in UNTOUCHED:
            continue
        base = {**places.definitions, name: {**schema, "description": "Before."}}
        after = {**places.definitions, name: {**schema, "description": "After."}}
        subjects = (
            places.subjects(name)
            | {name}
            | {
                f"{WAYS[s.capitalize()]} {m.kind} {m.name}"
                for m in places.protocol.methods
                if m.definition == name
                for s in m.senders
            }
        )
        found = Expected(frozenset({"description-changed"}), subjects)
        yield Mutation("words changed", name, base, after, (found,), documented=True)
        if name in places.notices:
            continue  # it is already deprecated
        notice = {"since": "2020-01-01", "instead": "use something else", "definitions": [name]}
        found = Expected(frozenset({"deprecated"}), subjects)
        plain = places.definitions
        yield Mutation("deprecated", name, plain, plain, (found,), semantics={"deprecations": [notice]})


# --- equivalent schemas --------------------------------------------------------------------------------------------


def idle_mutations(places: Places, random: Random) -> Iterator[Mutation]:
    """Yield other notations of the same protocol."""
    definitions = places.definitions
    for place in places.nodes:
        schema = at(definitions[place.definition], place.path)
        target = schema.get("$ref", "").rpartition("/")[2]
        if target and place.path and target not in UNTOUCHED and target not in set(named_in(definitions[target])):
            after = put(definitions, place, deepcopy(definitions[target]))
            if places.users[target] == {place.definition} and _count(definitions[place.definition], target) == 1:
                after = {name: known for name, known in after.items() if name != target}  # it is unused now
            if target not in after or target != inline_name(place.definition, str(place.path[-1])):
                yield Mutation("reference inlined", str(place), definitions, after, tolerated=STRUCTURE)
            after = put(definitions, place, {"allOf": [schema]})
            yield Mutation("reference wrapped", str(place), definitions, after, tolerated=STRUCTURE)
        elif place.path and (schema.get("properties") or "anyOf" in schema or "enum" in schema):
            after = put({**definitions, "ZzExtracted": schema}, place, ref("ZzExtracted"))
            yield Mutation("reference extracted", str(place), definitions, after, tolerated=STRUCTURE)
        if len(schema.get("anyOf", ())) > 1:
            members = random.sample(schema["anyOf"], len(schema["anyOf"]))
            yield Mutation("union reordered", str(place), definitions, put(definitions, place, {"anyOf": members}))
            if len(members) > 2 and all("$ref" in member for member in members):
                some, rest = schema["anyOf"][:2], schema["anyOf"][2:]
                after = put({**definitions, "ZzSome": {"anyOf": some}}, place, {"anyOf": [ref("ZzSome"), *rest]})
                yield Mutation("union nested", str(place), definitions, after, tolerated=STRUCTURE)
        if schema.get("properties") and "additionalProperties" not in schema:
            after = put(definitions, place, {**schema, "additionalProperties": random.choice([{}, True])})
            yield Mutation("openness spelled out", str(place), definitions, after)
    for seed in range(4):
        yield Mutation("keys shuffled", str(seed), definitions, shuffled(definitions, random.randrange(2**30)))
    legacy = {name: _legacy(schema) for name, schema in definitions.items()}
    yield Mutation("dialect", "definitions", definitions, {"": legacy})
    for role in sorted(ROLES & set(definitions)):
        options = definitions[role].get("anyOf", ())
        if len(options) == 1:
            inlined = definitions[options[0]["$ref"].rpartition("/")[2]]
            yield Mutation("union of one inlined", role, definitions, {**definitions, role: inlined})


def _count(schema: Schema, name: str) -> int:
    return sum(target == name for target in named_in(schema))


def _legacy(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: f"#/definitions/{child.rpartition('/')[2]}" if key == "$ref" else _legacy(child)
            for key, child in node.items()
        }
    return [_legacy(child) for child in node] if isinstance(node, list) else node


def together(chosen: Iterable[Mutation], definitions: Definitions) -> Mutation:
    """Return one mutation with several mutations of different definitions."""
    several = list(chosen)
    changed = {mutation.definition: mutation.new[mutation.definition] for mutation in several}
    assert len(changed) == len(several)
    return Mutation(
        "several",
        ", ".join(f"{mutation.kind} at {mutation.place}" for mutation in several),
        definitions,
        {**definitions, **changed},
        tuple(expected for mutation in several for expected in mutation.expected),
    )


def bundles(places: Places, wanted: int, size: int, seed: int) -> Iterator[Mutation]:
    """Yield `wanted` combinations of `size` mutations, none of which hides another mutation."""
    random = Random(seed)
    alone: dict[str, list[Mutation]] = {}
    for family in (node_mutations, field_mutations):
        for mutation in family(places, random):
            hides = mutation.kind in ("reference replaced", "field removed") or mutation.place.endswith(".params")
            if mutation.old is places.definitions and not hides:
                alone.setdefault(mutation.definition, []).append(mutation)
    for _ in range(wanted):
        names = random.sample(sorted(alone), size)
        yield together((random.choice(alone[name]) for name in names), places.definitions)


FAMILIES = (
    node_mutations,
    field_mutations,
    part_mutations,
    move_mutations,
    rename_mutations,
    message_mutations,
    error_mutations,
    definition_mutations,
    word_mutations,
    idle_mutations,
)
_ONE_WAY = {"words changed", "deprecated", "dialect"}


def mutations(places: Places, wanted: int, seed: int) -> list[Mutation]:
    """Return `wanted` mutations of a schema, evenly distributed over kinds, in random directions but reproducible."""
    random = Random(seed)
    kinds: dict[str, list[Mutation]] = {}
    for family in FAMILIES:
        for mutation in family(places, random):
            kinds.setdefault(mutation.kind, []).append(mutation)
    for known in kinds.values():
        random.shuffle(known)
    chosen: list[Mutation] = []
    while len(chosen) < wanted and any(kinds.values()):
        for kind, known in kinds.items():
            if known and len(chosen) < wanted:
                mutation = known.pop()
                one_way = kind in _ONE_WAY
                chosen.append(mutation if one_way or random.random() < 0.5 else mutation.reversed())
    return chosen
