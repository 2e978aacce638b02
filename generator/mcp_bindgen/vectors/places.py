"""Places in the documents of a definition: its members, also in inline types, with a document that has each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_bindgen.ir.examples import Examples, Unfit
from mcp_bindgen.ir.model import AnyValue, Array, Const, Definition, Field, Map, Object, Protocol, Ref, Type, Union
from mcp_bindgen.spec.json import is_object, join

KEY = "example"
"""Name of a member that stands for any name."""

Tokens = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """A place in the documents of a definition.

    Attributes:
        tokens: The way to it.
        type: Its type; references lead to other definitions, and to no inline type.
        document: A small document with a value at this place.
        field: The member of an object that it is, if it is one.
        variant: The member of an inline union on the way, if there is one.
        owner: The definition that has the type, or the member with the type.
        has_meaning: True if `vectors.toml` or the model state a value with a meaning beyond the type.
    """

    tokens: Tokens
    type: Type
    document: Any
    field: Field | None = None
    variant: str = ""
    owner: str = ""
    has_meaning: bool = False

    @property
    def pointer(self) -> str:
        """JSON Pointer to the place."""
        return join("", *self.tokens)

    def with_value(self, value: Any) -> Any:
        """Return the document with another value at this place."""
        return put(self.document, self.tokens, value)

    @property
    def value(self) -> Any:
        """The value at this place."""
        found = self.document
        for token in self.tokens:
            found = found[token]
        return found

    def without(self) -> Any:
        """Return the document without this member."""
        *above, last = self.tokens
        holder = replace(self, tokens=tuple(above))
        return holder.with_value({name: value for name, value in holder.value.items() if name != last})


def put(document: Any, tokens: Sequence[str | int], value: Any) -> Any:
    """Return a copy of `document` with `value` at the end of `tokens`."""
    if not tokens:
        return value
    token, *rest = tokens
    if is_object(document):
        return {**document, token: put(document.get(str(token)), rest, value)}
    return [put(item, rest, value) if index == token else item for index, item in enumerate(document)]


class Places:
    """Finder of places.

    Args:
        protocol: The model.
        values: `Definition.member` -> a value with the meaning that the schema does not state.
        always: The same for optional members that all documents of the definition have.
    """

    def __init__(self, protocol: Protocol, values: Mapping[str, Any], always: Mapping[str, Any]) -> None:
        self.protocol = protocol
        self._values = {**values, **always}
        definitions = {name: _with_values(one, self._values, always) for name, one in protocol.definitions.items()}
        self._examples = Examples(replace(protocol, definitions=definitions))

    def example(self, type: Type, *, full: bool = False) -> Any:
        """Return a valid value, with all optional members if `full`; raise `Unfit` if there is none."""
        return self._examples.one(type, full=full)

    def of(self, name: str) -> Iterator[Place]:
        """Yield the places of the documents of a definition, the whole document first."""
        yield from self._at(Place((), self.protocol.resolve(Ref(name)), self.example(Ref(name)), owner=name))

    def _at(self, place: Place, above: tuple[str, ...] = ()) -> Iterator[Place]:
        if isinstance(place.type, Ref):
            if place.type.name in above:
                return
            above = (*above, place.type.name)
            place = replace(place, owner=place.type.name)
        type = self.protocol.inline(place.type)
        yield replace(place, type=type)
        yield from self._inside(replace(place, type=type), above)

    def _inside(self, place: Place, above: tuple[str, ...]) -> Iterator[Place]:
        match place.type:
            case Object(fields, extra):
                for field in fields:
                    yield from self._step(place, field.wire, field.type, field, above)
                if extra is not None and not isinstance(extra, AnyValue):
                    yield from self._step(place, KEY, extra, None, above)
            case Map(values):
                yield from self._step(place, KEY, values, None, above)
            case Array(items):
                try:
                    document = place.with_value([self.example(items)])
                except Unfit:
                    return
                item = replace(place, tokens=(*place.tokens, 0), type=items, document=document, field=None)
                yield from self._at(item, above)
            case Union(members):
                for member in members:
                    inner = self.protocol.inline(member)
                    if isinstance(inner, Object | Array | Map):
                        label = member.name if isinstance(member, Ref) else inner.kind
                        document = place.with_value(self.example(inner))
                        variant = replace(place, type=inner, document=document, variant=label, owner=label)
                        yield from self._inside(variant, above)
            case _:
                return

    def _step(
        self, place: Place, name: str, type: Type, field: Field | None, above: tuple[str, ...]
    ) -> Iterator[Place]:
        key = f"{place.owner}.{name}"
        has_meaning = key in self._values or (field is not None and field.default is not None)
        known = place.value
        if is_object(known) and name in known:
            value = known[name]
        elif key in self._values:
            value = self._values[key]
        else:
            try:
                value = self.example(type)
            except Unfit:
                return
        tokens = (*place.tokens, name)
        document = put(place.document, tokens, value)
        inner = replace(place, tokens=tokens, type=type, document=document, field=field, has_meaning=has_meaning)
        yield from self._at(inner, above)


def _with_values(definition: Definition, values: Mapping[str, Any], always: Mapping[str, Any]) -> Definition:
    """Return a definition whose members of known meaning are constants, and required if all documents have them."""
    if not isinstance(definition.type, Object):
        return definition
    fields = tuple(
        replace(field, type=Const((values[key],)), required=field.required or key in always)
        if (key := f"{definition.name}.{field.wire}") in values
        else field
        for field in definition.type.fields
    )
    return replace(definition, type=replace(definition.type, fields=fields))
