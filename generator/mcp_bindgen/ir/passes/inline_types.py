"""Name inline types: objects, params of any object, and types that can only be refined under a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcp_bindgen.spec import DiagnosticContext, Schema
from mcp_bindgen.spec.json import is_object, join
from mcp_bindgen.spec.keywords import has_members
from mcp_bindgen.spec.references import reference

from .. import naming
from ..model import AnyValue, Array, Definition, Map, Object, Ref, Scalar, Type, Union, renamed
from .build_state import BuildState, numbered_name
from .collect_methods import method_of


def extract_inline_objects(state: BuildState) -> BuildState:
    """Move each object with members of its own out of its place and into a definition.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    extraction = _Extraction(set(state.schemas), state.context)
    schemas = {
        name: extraction.definition(name, state.schemas[name], join("/$defs", name)) for name in sorted(state.schemas)
    }
    return state.extracted(schemas, extraction.found, extraction.tops)


class _Extraction:
    def __init__(self, taken: set[str], context: DiagnosticContext) -> None:
        self.taken, self.context = taken, context
        self.found: dict[str, Schema] = {}
        self.tops: dict[str, str] = {}
        self.stems: dict[str, str] = {}

    def definition(self, name: str, schema: Schema, here: str) -> Schema:
        """Return `schema`, which stays where it is, with everything inline below it moved out."""
        result = dict(schema)
        for keyword, member in (("items", "Item"), ("additionalProperties", "Value")):
            if is_object(schema.get(keyword)):
                result[keyword] = self.place(name, member, schema[keyword], join(here, keyword))
        if "properties" in schema:
            result["properties"] = {
                member: self.place(name, member, child, join(here, "properties", member))
                for member, child in schema["properties"].items()
            }
        return self.unions(result, name, "Option", here)

    def place(self, parent: str, member: str, schema: Schema | bool, here: str) -> Schema | bool:
        """Return the replacement of `schema`: itself, or a reference to its new definition."""
        if not is_object(schema):
            return schema
        if has_members(schema):
            return self.move(parent, member, schema, here)
        result = dict(schema)
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                result[keyword] = self.place(parent, member, schema[keyword], join(here, keyword))
        return self.unions(result, parent, member, here)

    def unions(self, schema: Schema, parent: str, member: str, here: str) -> Schema:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                inline = [option for option in schema[keyword] if is_object(option) and has_members(option)]
                several = len(inline) > 1
                schema[keyword] = [
                    self.place(
                        parent,
                        f"{member}{inline.index(option) + 1}" if several and option in inline else member,
                        option,
                        join(here, keyword, index),
                    )
                    for index, option in enumerate(schema[keyword])
                ]
        return schema

    def move(self, parent: str, member: str, schema: Schema, here: str) -> Schema:
        stem = self.stems.get(parent, parent)
        name = naming.inline_name(stem, member, "Object")
        if name in self.taken:
            name = f"{parent}{naming.pascal(member) or 'Value'}"
        if name in self.taken:
            fix = "rename one of them with a patch"
            name = numbered_name(self.context, "an inline object", name, self.taken.__contains__, here, fix)
        self.taken.add(name)
        self.context.moved(name, here)
        self.tops[name] = self.tops.get(parent, parent)
        if name == f"{stem}Object":
            self.stems[name] = stem
        self.found[name] = self.definition(name, schema, join("/$defs", name))
        return {"$ref": reference(name)}


def merge_inline_objects(state: BuildState) -> BuildState:
    """Give the most frequent form of inline objects at a member, such as `_meta`, its stated name.

    Other forms keep the names of their places, and so do all where the name stands for something else.
    """
    names: dict[str, str] = {}
    merged: dict[str, Definition] = {}
    shared: Mapping[str, str] = state.semantics["shared"]
    for member, name in shared.items():
        places = _most_frequent(state, member)
        known = state.definitions.get(name)
        if len(places) > 1 and (known is None or known.type == state.definitions[places[0]].type):
            form = state.definitions[places[0]]
            same = [place for place in _below(state, member) if state.definitions[place].type == form.type]
            names |= dict.fromkeys((*places, *same), name)
            merged[name] = known or replace(form, name=name)
    kept = {name: definition for name, definition in state.definitions.items() if name not in names}
    definitions = {
        name: replace(definition, type=renamed(definition.type, names))
        for name, definition in {**kept, **merged}.items()
    }
    return replace(state, definitions=dict(sorted(definitions.items())))


def _most_frequent(state: BuildState, member: str) -> list[str]:
    """List the inline objects of core below `member` that have the form which most of them have."""
    forms: defaultdict[Type, list[str]] = defaultdict(list)
    for name in sorted(name for name in _below(state, member) if not state.definitions[name].origin):
        forms[state.definitions[name].type].append(name)
    return max(forms.values(), key=len, default=list[str]())


def _below(state: BuildState, member: str) -> Iterator[str]:
    for definition in state.definitions.values():
        field = definition.type.field(member) if isinstance(definition.type, Object) else None
        if field is not None and isinstance(field.type, Ref) and state.definitions[field.type.name].inline:
            yield field.type.name


_MEMBER = "params"


def name_open_params(state: BuildState) -> BuildState:
    """Make a definition, `{Message}Params`, of params that name no member: `{}`, or `{"type": "object"}`.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    found: dict[str, Definition] = {}
    taken = set(state.definitions)
    for name, definition in state.definitions.items():
        field = definition.type.field(_MEMBER) if isinstance(definition.type, Object) else None
        extra = _values(state.resolve(field.type)) if field is not None else None
        if field is None or extra is None or method_of(definition) is None:
            continue
        assert isinstance(definition.type, Object)
        named = naming.inline_name(name, _MEMBER)
        if named in taken:
            pointer, fix = f"/$defs/{name}/properties/{_MEMBER}", f"refer to {named!r} there, or rename it with a patch"
            named = numbered_name(state.context, "the type of its params", named, taken.__contains__, pointer, fix)
        taken.add(named)
        fields = tuple(replace(one, type=Ref(named)) if one is field else one for one in definition.type.fields)
        found[name] = replace(definition, type=replace(definition.type, fields=fields))
        found[named] = Definition(named, Object((), extra), field.doc, inline=True, origin=definition.origin)
    return replace(state, definitions=dict(sorted({**state.definitions, **found}.items())))


def _values(type: Type) -> Type | None:
    """Return the type of any member of a type that names none; `None` for other types."""
    match type:
        case AnyValue():
            return type
        case Map(values):
            return values
        case _:
            return None


def name_refinements(state: BuildState) -> BuildState:
    """Move tagged unions and constrained types out of arrays, maps and unions: `{Parent}{Property}`.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    namer = _Namer(state)
    renamed = state.retyped(lambda name, type: namer.outer(type, name, ""))
    return replace(renamed, definitions=dict(sorted({**renamed.definitions, **namer.found}.items())))


class _Namer:
    """Makes definitions of types.

    Args:
        state: The state with the types.
    """

    def __init__(self, state: BuildState) -> None:
        self.state = state
        self.found: dict[str, Definition] = {}

    def outer(self, type: Type, parent: str, member: str) -> Type:
        """Return `type` in a place where it can be refined: a definition or a field."""
        match type:
            case Array(items, constraints):
                return Array(self.inner(items, parent, member or "Item"), constraints)
            case Map(values):
                return Map(self.inner(values, parent, member or "Value"))
            case Union(members, tag):
                return Union(tuple(self.inner(option, parent, member or "Option") for option in members), tag)
            case Object(fields, extra):
                return Object(
                    tuple(field.of(self.outer(field.type, parent, field.wire)) for field in fields),
                    None if extra is None else self.inner(extra, parent, "Extra"),
                )
            case _:
                return type

    def inner(self, type: Type, parent: str, member: str) -> Type:
        """Return `type` in a place where it cannot: a reference, if it would have to be."""
        type = self.outer(type, parent, member)
        refined = (isinstance(type, Union) and type.tag is not None) or (
            isinstance(type, Scalar | Array) and bool(type.constraints)
        )
        if not refined:
            return type
        name = self.free(naming.inline_name(parent, member), type, f"/$defs/{parent}")
        origin = self.state.definitions[parent].origin
        self.found[name] = Definition(name, type, inline=True, origin=origin)
        return Ref(name)

    def free(self, stem: str, type: Type, pointer: str) -> str:
        """Return `stem`, or with a number where another type has that name; `pointer` is the place of the type."""

        def is_taken(name: str) -> bool:
            return name in self.state.definitions or (name in self.found and self.found[name].type != type)

        if stem in self.state.definitions:
            fix = "rename one of them with a patch"
            return numbered_name(self.state.context, "an inline type", stem, is_taken, pointer, fix)
        return naming.numbered(stem, is_taken) if is_taken(stem) else stem
