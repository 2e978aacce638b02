"""The protocol model: the meaning of a revision on the wire, as frozen dataclasses.

Emitters, comparisons and bridges read only this. The model has no names of a programming language.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, SkipValidation, StrictBool, StrictInt
from pydantic import Field as Member
from pydantic.json_schema import SkipJsonSchema

from mcp_bindgen.spec import Correction, Diagnostic, DiagnosticContext, Era, Origin

from .json_form import OMITTED, AsObject, Flag, JsonText, Limit, List, Maybe, MaybeAny, NoneAsFalse, Pairs, Text, Texts

# --- types ----------------------------------------------------------------------------------------------------

Json = str | int | float | bool | None


@dataclass(frozen=True)
class AnyValue:
    """Any JSON value, `null` included.

    Attributes:
        kind: The tag in JSON, as in all types.
        implied: True for the members that an object leaves open without `additionalProperties`. Receivers accept
            them, but senders have no reason to send them.
    """

    kind: Literal["any"] = field(default="any", kw_only=True, repr=False)
    implied: Flag = field(default=False, compare=False, repr=False)


def is_implied(extra: object) -> bool:
    """Return True for members that an object leaves open without `additionalProperties`."""
    return isinstance(extra, AnyValue) and extra.implied


@dataclass(frozen=True)
class Scalar:
    """A JSON string, integer, number, boolean or null.

    Attributes:
        kind: The JSON type.
        constraints: JSON Schema keyword -> value.
        format: The `format` of a string.
    """

    kind: Literal["string", "integer", "number", "boolean", "null"]
    constraints: Pairs[Limit] = ()
    format: Maybe[str] = None


@dataclass(frozen=True)
class Const:
    """One of a few fixed values: a `const` has one, an `enum` has several."""

    kind: Literal["const"] = field(default="const", kw_only=True, repr=False)
    values: tuple[Json, ...]


@dataclass(frozen=True)
class Array:
    """A JSON array."""

    kind: Literal["array"] = field(default="array", kw_only=True, repr=False)
    items: Type
    constraints: Pairs[Limit] = ()


@dataclass(frozen=True)
class Tuple(Array):
    """A JSON array whose first items have types of their own. `items` is the type of each of its items.

    Attributes:
        prefix: The types of the first items.
        least: Number of items of the shortest array.
        rest: The type of further items; `None` if there are none.
    """

    prefix: tuple[Type, ...] = ()
    least: int = 0
    rest: Type | None = None


@dataclass(frozen=True)
class Map:
    """A JSON object used as a dictionary: all its members have the same type."""

    kind: Literal["map"] = field(default="map", kw_only=True, repr=False)
    values: Type


@dataclass(frozen=True)
class Ref:
    """A reference to a definition, by name."""

    kind: Literal["ref"] = field(default="ref", kw_only=True, repr=False)
    name: str


@dataclass(frozen=True)
class Union:
    """One of several types.

    Attributes:
        kind: The tag in JSON.
        members: The types.
        tag: The member whose constant tells the types apart, where the schema has one.
    """

    kind: Literal["union"] = field(default="union", kw_only=True, repr=False)
    members: Annotated[tuple[Type, ...], Member(min_length=1)]
    tag: Maybe[str] = None


@dataclass(frozen=True)
class Object:
    """A JSON object with named members. Only a definition has this type: inline objects become definitions.

    Attributes:
        kind: The tag in JSON.
        fields: The named members, in canonical order.
        extra: The type of every other member; `None` for an object that allows no other members, `false` in JSON.
    """

    kind: Literal["object"] = field(default="object", kw_only=True, repr=False)
    fields: tuple[Field, ...]
    extra: Annotated[Type | SkipJsonSchema[None], NoneAsFalse, Member(exclude_if=is_implied)] = AnyValue(implied=True)

    def field(self, wire: str) -> Field | None:
        """Return the field with the name `wire`, or None."""
        return next((member for member in self.fields if member.wire == wire), None)


Type = Annotated[AnyValue | Scalar | Const | Array | Map | Ref | Union | Object, Discriminator("kind")]


@dataclass(frozen=True)
class Field:
    """A named member of an object.

    Attributes:
        wire: The name; `name` in JSON.
        type: The type of the value.
        required: True if the member must be present.
        stated: A value known without the schema: the value that `semantics.toml` states for
            a required member, or the meaning of an absent member of a contract. `None` if there is no such value.
        doc: The description.
        fallback: The `default` of the schema, as JSON text; empty if the schema has none. `default` in JSON.
        deprecated: The date and the replacement, if the member is deprecated.
    """

    wire: Annotated[str, Member(alias="name")]
    type: Type
    required: StrictBool
    stated: MaybeAny = field(default=None, hash=False)
    doc: Text = ""
    fallback: Annotated[JsonText, Member(alias="default")] = ""
    deprecated: Text = ""

    def of(self, type: Type) -> Field:
        """Return this field with another type."""
        return self if type is self.type else replace(self, type=type)

    @property
    def default(self) -> Json:
        """The value that a sender need not give: the only constant of a required member, or the stated scalar."""
        return None if isinstance(self.filled, dict | list) else self.filled

    @property
    def filled(self) -> Any:
        """The value that a conversion fills in: the only constant of a required member, or the stated value."""
        return self.constant if self.required and self.constant is not None else self.stated

    @property
    def constant(self) -> Json:
        """The only value that the member may have, if there is only one."""
        return self.type.values[0] if isinstance(self.type, Const) and len(self.type.values) == 1 else None


def parts(type: Type) -> tuple[Type, ...]:
    """Return the types directly inside of `type`; a reference has none."""
    match type:
        case Array(items=inner) | Map(values=inner):
            return (inner,)
        case Union(members):
            return members
        case Object(fields, extra):
            return (*(member.type for member in fields), *(() if extra is None else (extra,)))
        case Ref() | AnyValue() | Scalar() | Const():
            return ()


def flattened(types: Iterable[Type]) -> list[Type]:
    """Return types with the members of unions in their place."""
    return [part for type in types for part in (type.members if isinstance(type, Union) else (type,))]


def union_of(types: Iterable[Type]) -> Type:
    """Return the union of types, each once; a single type stays as it is."""
    unique = tuple({repr(type): type for type in flattened(types)}.values())  # in Python, 1 and true are equal
    return unique[0] if len(unique) == 1 else Union(unique)


def references(type: Type) -> list[str]:
    """Return the names of the definitions to which `type` refers directly."""
    return [type.name] if isinstance(type, Ref) else [name for part in parts(type) for name in references(part)]


def map_parts(type: Type, change: Callable[[Type], Type]) -> Type:
    """Return `type` with each type directly inside of it replaced by `change(part)`."""
    match type:
        case Tuple(items=items, prefix=prefix, rest=rest):
            further = None if rest is None else change(rest)
            return replace(type, items=change(items), prefix=tuple(map(change, prefix)), rest=further)
        case Array(items):
            return replace(type, items=change(items))
        case Map(values):
            return Map(change(values))
        case Union(members):
            return replace(type, members=tuple(map(change, members)))
        case Object(fields, extra):
            changed = tuple(field.of(change(field.type)) for field in fields)
            return Object(changed, None if extra is None else change(extra))
        case Ref() | AnyValue() | Scalar() | Const():
            return type


def renamed(type: Type, names: Mapping[str, str]) -> Type:
    """Return `type` with the new names of definitions, by their old names."""
    if isinstance(type, Ref):
        return Ref(names[type.name]) if type.name in names else type
    return map_parts(type, lambda part: renamed(part, names))


# --- protocols ------------------------------------------------------------------------------------------------

Sender = Literal["client", "server"]
Kind = Literal["request", "notification"]
Carrier = Literal["message", "embedded"]
Comparison = Literal["equal", "part"]
Declarer = Literal["client", "server", "both"]
CapabilityName = Annotated[str, Member(pattern=r"^(client|server)\.")]

Places = Mapping[str, tuple[Type | None, str]]
"""Member of a fact -> the type that must have a member, and the name of that member."""

OTHER_SIDE: Mapping[Sender, Sender] = {"client": "server", "server": "client"}
"""Side -> the side at the other end of the connection."""


@dataclass(frozen=True)
class Definition:
    """A named type of the revision.

    Attributes:
        name: The name in the schema; inline objects are named `{Parent}{Member}`.
        type: The type.
        doc: The description.
        inline: True if the definition was an inline object in the schema.
        deprecated: The date and the replacement, if the definition is deprecated.
        origin: The id of the extension that defines it; empty for the core.
    """

    name: str
    type: Type
    doc: Text = ""
    inline: Flag = False
    deprecated: Text = ""
    origin: Text = ""


class Definitions:
    """Base class of models with definitions; it follows references to them."""

    definitions: Mapping[str, Definition]

    def resolve(self, type: Type) -> Type:
        """Follow references and return the first type that is not a reference."""
        while isinstance(type, Ref):
            type = self.definitions[type.name].type
        return type

    def inline(self, type: Type) -> Type:
        """Return `type` with references to inline types followed."""
        while isinstance(type, Ref) and self.definitions[type.name].inline:
            type = self.definitions[type.name].type
        return type

    def object_of(self, type: Type | None) -> Object | None:
        """Return the object that a type is, references followed; None for other types and unknown definitions."""
        while isinstance(type, Ref):
            found = self.definitions.get(type.name)
            type = found.type if found is not None else None
        return type if isinstance(type, Object) else None

    def fields_of(self, type: Type | None) -> tuple[Field, ...]:
        """Return the fields of an object, references followed; none for other types."""
        found = self.object_of(type)
        return found.fields if found is not None else ()

    def field_of(self, type: Type | None, wire: str | None) -> Field | None:
        """Return a field of an object, references followed; None if there is no such field."""
        return next((field for field in self.fields_of(type) if field.wire == wire), None)


@dataclass(frozen=True)
class HeaderParams:
    """Members of a request that HTTP headers may repeat, and where a client finds their schema.

    Attributes:
        listed_by: The method that lists the callable items, e.g. `tools/list`.
        items: The member of its result with the items.
        name: The member of an item with its name.
        schema: The member of an item with the JSON Schema of its arguments.
        arguments: The member of the params with the arguments.
    """

    listed_by: str
    items: str
    name: str
    schema: str
    arguments: str

    def places(self, model: Definitions, listed: Type | None, params: Type | None) -> Places:
        """Return the places of its members; `listed` is the result of `listed_by`."""
        items = model.field_of(listed, self.items)
        array = model.resolve(items.type) if items is not None else None
        item = array.items if isinstance(array, Array) else None
        return {
            "items": (listed, self.items),
            "name": (item, self.name),
            "schema": (item, self.schema),
            "arguments": (params, self.arguments),
        }


@dataclass(frozen=True)
class Truncation:
    """A list of limited length in a result.

    Attributes:
        holder: The member of the result that contains the list and its counters.
        values: The member with the list.
        total: The member with the number of all values.
        more: The member that is true if there are more values.
        max_items: The maximum length of the list.
    """

    holder: str
    values: str
    total: str
    more: str
    max_items: StrictInt

    def places(self, model: Definitions, result: Type | None) -> Places:
        """Return the places of its members."""
        holder = model.field_of(result, self.holder)
        inner = holder.type if holder is not None else None
        members = {"values": self.values, "total": self.total, "more": self.more}
        return {"holder": (result, self.holder), **{name: (inner, wire) for name, wire in members.items()}}


@dataclass(frozen=True)
class Need:
    """A capability that a request needs because of a member of its params.

    Attributes:
        member: The member of the params.
        capability: The capability, e.g. `client.elicitation.url`.
        values: The values of the member that need it; with `absent` false, an empty list stands for all values.
        absent: True if a request without the member needs it.
        tolerated: True if only the sender checks it.
        implied: True if the parent capability declares it too, unless another child is declared.
    """

    member: str
    capability: CapabilityName
    values: Texts = ()
    absent: Flag = False
    tolerated: Flag = False
    implied: Flag = False


@dataclass(frozen=True)
class Filter:
    """The member of a subscription's filter that requests a notification.

    Attributes:
        definition: The definition of the filter, or of the members that an extension adds to it.
        member: The member.
        compares: The member of the notification's params that is compared with the values of the filter; absent for
            a filter that is true or false.
        by: `equal` if it must equal one of the values, `part` if it may also be a URI below one.
    """

    definition: str
    member: str
    compares: Maybe[str] = None
    by: Comparison = "equal"


@dataclass(frozen=True)
class Method:
    """A JSON-RPC method of the protocol.

    Attributes:
        name: The name, e.g. `tools/call`.
        definition: The definition of its message, e.g. `CallToolRequest`.
        kind: Request or notification.
        senders: The sides that may send it.
        carrier: `message` for a JSON-RPC message; `embedded` inside of results and params of other messages.
        params: The type of the params; absent if it has none.
        params_required: True if `params` must be present.
        result: The type of the result; absent for a notification.
        alternatives: Other types that may answer a request.
        opt_in: The member of the params that requests an alternative answer, if the sender must request it.
        truncation: The list of limited length in the result, if there is one.
        capabilities: Sender -> dotted capability that must be declared before it sends the method.
        needs: Capabilities that depend on the params.
        arguments: Members of the params that a call takes by position, in order, where `semantics.toml` states them.
        lifecycle: When the runtime sends it by itself; empty for methods that user code sends.
        named_by: The member of the params that names the target of the request, where HTTP headers repeat it.
        header_params: The arguments that HTTP headers may repeat, if any.
        filter: How a subscription requests this notification, if it can.
        doc: The description of sending it.
        handling: The description of the handler's work.
        deprecated: The date and the replacement, if it is deprecated.
        origin: The id of the extension that defines it; empty for the core.
        declared_by: The side that must have declared that extension.
        setting: The setting of the extension that must be true at the receiver, if one must.
    """

    name: str
    definition: str
    kind: Kind
    senders: tuple[Sender, ...]
    carrier: Carrier = "message"
    params: Maybe[Type] = None
    params_required: Flag = False
    result: Maybe[Type] = None
    alternatives: List[Type] = ()
    opt_in: Maybe[str] = None
    truncation: Maybe[Truncation] = None
    capabilities: Annotated[tuple[tuple[Sender, CapabilityName], ...], AsObject, OMITTED] = ()
    needs: List[Need] = ()
    arguments: Texts = ()
    lifecycle: Text = ""
    named_by: Maybe[str] = None
    header_params: Maybe[HeaderParams] = None
    filter: Maybe[Filter] = None
    doc: Text = ""
    handling: Text = ""
    deprecated: Text = ""
    origin: Text = ""
    declared_by: Declarer = "both"
    setting: Text = ""

    @property
    def sender(self) -> str:
        """`client`, `server` or `both`."""
        return self.senders[0] if len(self.senders) == 1 else "both"

    @property
    def answers(self) -> tuple[Type, ...]:
        """All results of a request."""
        return (*((self.result,) if self.result is not None else ()), *self.alternatives)

    def capability(self, sender: Sender) -> str | None:
        """Return the capability that must be declared before `sender` sends the method, or None."""
        return dict(self.capabilities).get(sender)


@dataclass(frozen=True)
class ErrorCode:
    """An error code of the protocol.

    Attributes:
        name: The name.
        code: The code.
        definition: The definition of the error, if the schema has one.
        doc: The description.
        until: The last revision with this code, if `semantics.toml` states one.
        instead: The name of the error that takes its place afterwards, if one does.
        origin: The id of the extension that defines it; empty for the core.
    """

    name: str
    code: StrictInt
    definition: Maybe[str] = None
    doc: Text = ""
    until: Text = ""
    instead: Text = ""
    origin: Text = ""


@dataclass(frozen=True)
class Capability:
    """A capability that a side may declare, e.g. `resources.subscribe` of the server.

    Attributes:
        owner: The side that declares it.
        path: The dotted path in the definition of its capabilities.
        flag: True if it is declared as `true`; other capabilities are declared as objects.
    """

    owner: Sender
    path: str
    flag: Flag = False

    @property
    def name(self) -> str:
        """The dotted name with its owner, e.g. `server.resources.subscribe`."""
        return f"{self.owner}.{self.path}"


@dataclass(frozen=True)
class Facts:
    """Facts of a revision that a connection needs beside its methods.

    Attributes:
        utilities: Role -> method with that role: `cancelled`, `progress`, `log`, `ping`.
        meta_keys: The keys of `_meta` that the protocol defines.
        cache_invalidations: Notification -> the methods whose cached results it invalidates.
        batches: True if the revision has JSON-RPC batches.
        stream_polling: True if a client reconnects to a stream that the server closed.
        unnamed_over_http: True if an HTTP message without a revision is in this revision.
        trace_context: The keys of `_meta` with the context of a trace.
        argument_errors_in_results: True if a tool reports invalid arguments in its result.
        draft: True for a revision that is not released.
        missing: Definitions that a connection needs first and that the schema lacks.
    """

    utilities: Pairs[str] = ()
    meta_keys: Texts = ()
    cache_invalidations: Pairs[tuple[str, ...]] = ()
    batches: Flag = False
    stream_polling: Flag = False
    unnamed_over_http: Flag = False
    trace_context: Texts = ()
    argument_errors_in_results: Flag = False
    draft: Flag = False
    missing: Texts = ()


@dataclass(frozen=True)
class MetaKey:
    """A key of `_meta` that an extension defines.

    Attributes:
        key: The key.
        type: The type of its value.
        on: The definitions whose `_meta` may have it.
    """

    key: str
    type: Type
    on: Texts = ()


@dataclass(frozen=True)
class Extension:
    """An extension of the revision.

    Attributes:
        id: The identifier, e.g. `com.example/jobs`.
        version: The version.
        name: The short name, e.g. `jobs`.
        digest: sha256 of its effective structure.
        options: Options for emitters, by name; each emitter documents its own.
        settings: Side -> definition of the settings that it declares.
        meta_keys: The keys of `_meta` that the extension defines.
        alternatives: Method of the core -> definitions of the extension that may answer it.
        cache_invalidations: Notification -> the methods whose cached results it invalidates.
        extends: Definition of the core -> definition with the members that the extension adds to it.
        doc: The description.
    """

    id: str
    version: str
    name: str
    digest: str
    options: Pairs[str] = ()
    settings: Annotated[tuple[tuple[Sender, str], ...], AsObject, OMITTED] = ()
    meta_keys: List[MetaKey] = ()
    alternatives: Pairs[tuple[str, ...]] = ()
    cache_invalidations: Pairs[tuple[str, ...]] = ()
    extends: Pairs[str] = ()
    doc: Text = ""


@dataclass(frozen=True)
class Protocol(Definitions):
    """One revision.

    Attributes:
        revision: The name of the revision.
        era: `stateful` or `stateless`.
        digest: sha256 of the effective structure that the model was read from.
        definitions: Name -> definition, in alphabetical order.
        methods: All methods, in alphabetical order.
        errors: Error codes, in ascending order.
        capabilities: The capabilities of both sides.
        facts: Facts that a connection needs beside the methods.
        origin: The origin of its descriptions: `ours` for `docs.toml`, `file` for the schema file itself.
        corrections: Known mistakes that were corrected in a schema file from outside.
        diagnostics: How the schema was read where it breaks a rule; empty in strict mode.
        extensions: The extensions that the revision is read with, in the given order.
        context: Reports broken rules of emitters, by place in the schema file; not a part of the JSON.
    """

    revision: str
    era: Era
    digest: str
    definitions: Mapping[str, Definition]
    methods: tuple[Method, ...]
    errors: List[ErrorCode] = ()
    capabilities: List[Capability] = ()
    facts: Facts = field(default_factory=Facts)
    origin: Origin = "file"
    corrections: List[Correction] = ()
    diagnostics: List[Diagnostic] = ()
    extensions: List[Extension] = ()
    context: Annotated[SkipJsonSchema[SkipValidation[DiagnosticContext]], Member(exclude=True)] = field(
        default_factory=partial(DiagnosticContext, strict=False), compare=False, repr=False
    )

    def accepts_null(self, type: Type) -> bool:
        """Return True if `null` is a value of `type`."""
        match self.resolve(type):
            case AnyValue():
                return True
            case Scalar(kind):
                return kind == "null"
            case Const(values):
                return None in values
            case Union(members):
                return any(self.accepts_null(member) for member in members)
            case _:
                return False

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the protocol with new names of definitions, by their old names."""

        def name(old: str) -> str:
            return names.get(old, old)

        def type_of(type: Type) -> Type:
            return renamed(type, names)

        def method(one: Method) -> Method:
            return replace(
                one,
                definition=name(one.definition),
                params=type_of(one.params) if one.params is not None else None,
                result=type_of(one.result) if one.result is not None else None,
                alternatives=tuple(map(type_of, one.alternatives)),
                filter=replace(one.filter, definition=name(one.filter.definition)) if one.filter else None,
            )

        def extension(one: Extension) -> Extension:
            return replace(
                one,
                settings=tuple((side, name(settings)) for side, settings in one.settings),
                meta_keys=tuple(
                    replace(key, type=type_of(key.type), on=tuple(map(name, key.on))) for key in one.meta_keys
                ),
                alternatives=tuple((method, tuple(map(name, types))) for method, types in one.alternatives),
                extends=tuple((name(core), name(own)) for core, own in one.extends),
            )

        definitions = {
            name(old): replace(one, name=name(old), type=type_of(one.type)) for old, one in self.definitions.items()
        }
        return replace(
            self,
            definitions=dict(sorted(definitions.items())),
            methods=tuple(map(method, self.methods)),
            errors=tuple(
                replace(one, definition=name(one.definition) if one.definition else None) for one in self.errors
            ),
            extensions=tuple(map(extension, self.extensions)),
        )

    def added_answers(self, method: str) -> list[str]:
        """Return the definitions with which the extensions may answer a method, beside its own results."""
        return [name for one in self.extensions for name in dict(one.alternatives).get(method, ())]

    def reach(self, roots: Iterable[str], within: Container[str] | None = None) -> dict[str, None]:
        """Return `roots` and all definitions that they refer to, in order of discovery.

        Args:
            roots: Names of definitions.
            within: The definitions that the search may enter; all by default.
        """
        found: dict[str, None] = {}
        pending = list(roots)
        while pending:
            name = pending.pop()
            if name not in found and (within is None or name in within):
                found[name] = None
                pending.extend(references(self.definitions[name].type))
        return found
