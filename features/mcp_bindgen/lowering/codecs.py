"""Codecs between the values that a model writes and the values that a tool accepts.

A codec belongs to a place in a schema. `decode` is total for every value of the lowered schema, with one exception:
the text of a JSON document may be invalid. `encode` raises `Lost` for a value that the lowered schema cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from mcp_bindgen.runtime.model.json_types import ABSENT, distinct, is_array, is_object, parse_json, same_json

Json: TypeAlias = Any
"""JSON value, as `json.loads` returns it."""


class Lost(ValueError):
    """A value of the tool that the lowered schema cannot express."""


class Undecodable(ValueError):
    """A value of the model that stands for no value of the tool; the model can read the message and try again."""


class Codec(Protocol):
    """Translation of the values at one place, in both directions."""

    def decode(self, value: Json) -> Json:
        """Return the tool's value for a model's value."""
        ...

    def encode(self, value: Json) -> Json:
        """Return the model's value for a tool's value."""
        ...


class _Identity:
    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return value

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        return _stated(value)


IDENTITY: Final[Codec] = _Identity()


def _stated(value: Json) -> Json:
    """Return a value; raise `Lost` if it is absent."""
    if value is ABSENT:
        raise Lost("the member is required")
    return value


@dataclass(frozen=True)
class Labels:
    """Strings that stand for constants. A label is also recognised in another letter case if that is unambiguous."""

    values: Mapping[str, Any]

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        if value in self.values or not isinstance(value, str):
            return self.values.get(value, value) if isinstance(value, str) else value
        near = [label for label in self.values if label.casefold() == value.casefold()]
        return self.values[near[0]] if len(near) == 1 else value

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        for label, constant in self.values.items():
            if same_json(constant, _stated(value)):
                return label
        raise Lost(f"{value!r} has no label")


@dataclass(frozen=True)
class Constant:
    """An object of the model that stands for a constant of the tool."""

    wire: Json
    value: Json

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return self.value

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if value is ABSENT or not same_json(value, self.value):
            raise Lost("it is another constant")
        return self.wire


@dataclass(frozen=True)
class Nullable:
    """A value that may be null for the model or the tool; for the other side, null is null or absence.

    Attributes:
        inner: The codec of other values.
        wire: What the model writes for no value: null, or nothing (`ABSENT`).
        value: What the tool gets for it: null, or nothing.
    """

    inner: Codec
    wire: Json
    value: Json

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return self.value if value is self.wire else self.inner.decode(value)

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if value is self.value:
            return self.wire
        if (encoded := self.inner.encode(value)) is self.wire:
            raise Lost("null stands for an absent member")
        return encoded


class JsonValue:
    """Any JSON value, with objects as `{"entries": [{"key": ..., "value": ...}]}`."""

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        if is_array(value):
            return [self.decode(item) for item in value]
        if is_object(value):
            return {entry["key"]: self.decode(entry["value"]) for entry in value["entries"]}
        return value

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if is_array(value):
            return [self.encode(item) for item in value]
        if is_object(value):
            return {"entries": [{"key": name, "value": self.encode(one)} for name, one in value.items()]}
        return _stated(value)


class JsonText:
    """A JSON document as text."""

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""

        try:
            return parse_json(value) if isinstance(value, str) else value
        except ValueError as error:
            raise Undecodable(f"{value[:60]!r} is not the text of a JSON document: {error}") from None

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        return json.dumps(_stated(value), ensure_ascii=False)


@dataclass(frozen=True)
class Member:
    """A member of an object: its name for the tool, and its codec."""

    name: str
    codec: Codec = IDENTITY


@dataclass(frozen=True)
class Members:
    """An object with named members.

    Attributes:
        members: Name for the model -> member.
        rest: The codec of other members; `None` if they are dropped.
        hidden: Names of other members that are dropped in any case.
        entries: Name of the member that holds the other members as entries.
    """

    members: Mapping[str, Member]
    rest: Codec | None = None
    hidden: frozenset[str] = frozenset()
    entries: str = ""
    entry_codec: Codec = IDENTITY

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        if not is_object(value):
            return value
        found: dict[str, Any] = self.entry_codec.decode(value.get(self.entries) or []) if self.entries else {}
        named = {member.name for member in self.members.values()}
        if taken := named & found.keys():
            raise Undecodable(f"{self.entries} repeats the member {min(taken)!r}")
        for name, member in self.members.items():
            is_stated = name in value or (isinstance(member.codec, Nullable) and member.codec.wire is ABSENT)
            decoded = member.codec.decode(value.get(name, ABSENT)) if is_stated else ABSENT
            if decoded is not ABSENT:
                found[member.name] = decoded
        if self.rest is not None:
            others = value.keys() - self.members.keys() - named - self.hidden
            found |= {name: self.rest.decode(value[name]) for name in value if name in others}
        return found

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if not is_object(value):
            raise Lost("it is no object")
        found: dict[str, Any] = {}
        for name, member in self.members.items():
            is_stated = member.name in value or (isinstance(member.codec, Nullable) and member.codec.value is ABSENT)
            encoded = member.codec.encode(value.get(member.name, ABSENT)) if is_stated else ABSENT
            if encoded is not ABSENT:
                found[name] = encoded
        named = {member.name for member in self.members.values()}
        others = {name: one for name, one in value.items() if name not in named}
        if hidden := others.keys() & self.hidden:
            raise Lost(f"the member {min(hidden)!r} cannot be expressed")
        if self.entries:
            found[self.entries] = self.entry_codec.encode(others)
        elif self.rest is not None and not others.keys() & self.members.keys():
            found |= {name: self.rest.encode(one) for name, one in others.items()}
        elif others:
            raise Lost(f"the member {min(others)!r} cannot be expressed")
        return found


@dataclass(frozen=True)
class Entries:
    """An object as an array of `{"key": ..., "value": ...}`; of equal keys the last entry counts, as in JSON texts."""

    keys: Codec
    values: Codec

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return {self.keys.decode(entry["key"]): self.values.decode(entry["value"]) for entry in value}

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if not is_object(value):
            raise Lost("it is no object")
        return [{"key": self.keys.encode(name), "value": self.values.encode(one)} for name, one in value.items()]


@dataclass(frozen=True)
class Positions:
    """A tuple as an object with the members `"0"`, `"1"` and so on."""

    codecs: Sequence[Codec]

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return [codec.decode(value[str(index)]) for index, codec in enumerate(self.codecs)]

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if not is_array(value) or len(value) != len(self.codecs):
            raise Lost(f"it is no array of {len(self.codecs)} items")
        return {str(index): codec.encode(value[index]) for index, codec in enumerate(self.codecs)}


@dataclass(frozen=True)
class Items:
    """An array. With `distinct`, repeated items are dropped, because the tool wants a set."""

    prefix: Sequence[Codec]
    rest: Codec
    distinct: bool = False

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        if not is_array(value):
            return value
        found = [self._at(index).decode(item) for index, item in enumerate(value)]
        return distinct(found) if self.distinct else found

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        if not is_array(value):
            raise Lost("it is no array")
        return [self._at(index).encode(item) for index, item in enumerate(value)]

    def _at(self, index: int) -> Codec:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True)
class Wrapped:
    """A value as the only member of an object."""

    name: str
    inner: Codec

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return self.inner.decode(value[self.name])

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        return {self.name: self.inner.encode(value)}


@dataclass(frozen=True)
class Branches:
    """Alternatives, each with a test of the model's value; the first alternative that fits decodes it."""

    branches: Sequence[tuple[Callable[[Any], bool], Codec]]

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return next((codec.decode(value) for fits, codec in self.branches if fits(value)), value)

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        for fits, codec in self.branches:
            try:
                encoded = codec.encode(value)
                if fits(encoded) and same_json(self.decode(encoded), value):
                    return encoded
            except (Lost, Undecodable):
                continue
        raise Lost("no alternative expresses it")


@dataclass(frozen=True)
class Named:
    """The codec of a definition, which may refer to itself."""

    table: Mapping[str, Codec] = field(repr=False)
    name: str

    def decode(self, value: Json) -> Json:
        """Return the tool's value."""
        return self.table[self.name].decode(value)

    def encode(self, value: Json) -> Json:
        """Return the model's value."""
        return self.table[self.name].encode(value)
