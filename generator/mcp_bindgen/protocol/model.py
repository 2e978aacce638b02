"""The protocol model: what a revision says, as frozen dataclasses. Emitters, scaffolds and diffs read only this."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mcp_bindgen.spec import Correction, Decision, Origin

from .types import (
    Array,
    Const,
    Field,
    Free,
    Json,
    Map,
    Object,
    Ref,
    Scalar,
    Type,
    Union,
    map_parts,
    parts,
    references,
)

Sender = Literal["client", "server"]
Kind = Literal["request", "notification"]
Carrier = Literal["message", "embedded"]
Comparison = Literal["equal", "part"]


@dataclass(frozen=True)
class Definition:
    """A named type of the revision.

    Attributes:
        name: Its name in the schema and in Python.
        type: What it is.
        doc: What it means.
        hoisted: Whether it was an inline object in the schema.
        deprecated: Why it should no longer be used, if so.
        alias: Its name in the schema, where it has another one in Python.
        origin: The id of the extension that brings it; empty for what is core's.
    """

    name: str
    type: Type
    doc: str = ""
    hoisted: bool = False
    deprecated: str = ""
    alias: str = ""
    origin: str = ""


@dataclass(frozen=True)
class HeaderParams:
    """The fields that headers may repeat of a request, and those that ask for it.

    Attributes:
        listed_by: The method that lists what can be called.
        items: The field of its result that holds the items; this and the others in Python.
        name: The field by which an item is named.
        schema: The field of an item with the JSON Schema of its arguments.
        arguments: The field of the params with the arguments.
    """

    listed_by: str
    items: str
    name: str
    schema: str
    arguments: str


@dataclass(frozen=True)
class Truncation:
    """A list of limited length in a result; all but `max_items` are names of fields, in Python.

    Attributes:
        holder: What holds the list.
        values: The list.
        total: How many values there are.
        more: Whether there are more.
        max_items: How many values may be sent.
    """

    holder: str
    values: str
    total: str
    more: str
    max_items: int


@dataclass(frozen=True)
class Need:
    """A capability that a request needs because of what its params hold.

    Attributes:
        field: The field of the params, in Python.
        capability: The capability, e.g. `client.elicitation.url`.
        values: The values of the field that need it, `None` among them if its absence does; empty if any value does.
        tolerated: Whether only the sender checks it.
        implied: Whether who declares the capability above it, and no other below that, declares this one.
    """

    field: str
    capability: str
    values: tuple[Json, ...] = ()
    tolerated: bool = False
    implied: bool = False


@dataclass(frozen=True)
class Method:
    """A JSON-RPC method of the protocol.

    Attributes:
        name: Its name on the wire, e.g. `tools/call`.
        definition: The definition of its message, e.g. `CallToolRequest`.
        stub: Its name in Python, e.g. `call_tool`.
        kind: Request or notification.
        senders: Who may send it.
        carrier: A message of its own, or embedded in the results and params of others.
        params: Its params, or `None` when it has none.
        params_required: Whether `params` must be there.
        result: What answers it; `None` for a notification.
        alternatives: What may answer it instead.
        asked_by: The field of the params that asks for an alternative, if it must be asked for; in Python.
        truncation: The list of limited length in its result, if there is one.
        capabilities: Sender -> dotted capability that must be declared first, e.g. `server.tools`.
        needs: What it needs beside that, by what its params hold.
        arguments: The members of the params that a call takes by position, in this order; by their wire names.
        lifecycle: When the runtime sends it by itself; empty for what users send.
        named_by: The field of the params that names what it is about, where headers repeat it; in Python.
        header_params: Where its arguments are repeated in headers, if they may be.
        filter: The field of a subscription's filter that asks for it, in Python.
        compares: The field of its params that is compared with the values there, in Python; `None` for a flag.
        compares_by: How: `equal` to one of the values, or `part` of one that is a URI.
        doc: What sending it does.
        handling: What is left to whoever handles it; empty where nothing is said.
        deprecated: Why it should no longer be used, if so.
        origin: The id of the extension that brings it; empty for what is core's.
        declared_by: Who must have declared that extension.
        setting: The member of its receiver's settings there that must be true, by its wire name; empty if none must.
    """

    name: str
    definition: str
    stub: str
    kind: Kind
    senders: tuple[Sender, ...]
    carrier: Carrier = "message"
    params: Type | None = None
    params_required: bool = False
    result: Type | None = None
    alternatives: tuple[Type, ...] = ()
    asked_by: str | None = None
    truncation: Truncation | None = None
    capabilities: tuple[tuple[Sender, str], ...] = ()
    needs: tuple[Need, ...] = ()
    arguments: tuple[str, ...] = ()
    lifecycle: str = ""
    named_by: str | None = None
    header_params: HeaderParams | None = None
    filter: str | None = None
    compares: str | None = None
    compares_by: Comparison = "equal"
    doc: str = ""
    handling: str = ""
    deprecated: str = ""
    origin: str = ""
    declared_by: Literal["client", "server", "both"] = "both"
    setting: str = ""

    @property
    def sender(self) -> str:
        """`client`, `server` or `both`."""
        return self.senders[0] if len(self.senders) == 1 else "both"

    def capability(self, sender: Sender) -> str | None:
        """Return the capability that must be declared before `sender` may send it."""
        return dict(self.capabilities).get(sender)


@dataclass(frozen=True)
class ErrorCode:
    """An error code of the protocol.

    Attributes:
        name: Its name.
        code: The code.
        definition: The schema's type for it, where there is one.
        doc: What it means.
        until: The last revision that has it, where `semantics.toml` states one.
        origin: The id of the extension that brings it; empty for what is core's.
    """

    name: str
    code: int
    definition: str | None = None
    doc: str = ""
    until: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Capability:
    """Something that `owner` may declare in the definition of its capabilities, e.g. `server` `resources.subscribe`.

    A `flag` is declared as `true`, others as objects.
    """

    owner: Sender
    path: str
    flag: bool = False

    @property
    def name(self) -> str:
        """The dotted name with its owner, e.g. `server.resources.subscribe`."""
        return f"{self.owner}.{self.path}"


@dataclass(frozen=True)
class Facts:
    """The facts of a revision that a connection needs beside its methods.

    Attributes:
        utilities: Role -> the method that plays it: `cancelled`, `progress`, `log`, `ping`.
        meta_keys: Python name -> key, of the members of `_meta` that the protocol defines.
        stale: Notification -> the methods whose results it makes stale.
        batches: Whether there are JSON-RPC batches.
        stream_polling: Whether clients come back to a stream that the server closed.
        unnamed_over_http: Whether a message over HTTP is in this revision that names none.
        trace_context: The members of `_meta` that carry the context of a trace.
        argument_errors_in_results: Whether a tool answers arguments that do not fit with a result.
        draft: Whether the revision is not released yet.
        missing: The definitions that a connection begins with and that the schema lacks.
    """

    utilities: tuple[tuple[str, str], ...] = ()
    meta_keys: tuple[tuple[str, str], ...] = ()
    stale: tuple[tuple[str, tuple[str, ...]], ...] = ()
    batches: bool = False
    stream_polling: bool = False
    unnamed_over_http: bool = False
    trace_context: tuple[str, ...] = ()
    argument_errors_in_results: bool = False
    draft: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetaKey:
    """A key of `_meta` that an extension defines.

    Attributes:
        name: Its name in Python.
        key: The key.
        type: What stands there.
        on: The definitions whose `_meta` may have it.
    """

    name: str
    key: str
    type: Type
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filter:
    """A member that an extension adds to the filter of subscriptions.

    Attributes:
        method: The notification that it asks for.
        member: Its wire name.
        field: Its name in Python.
        compares: The field of the notification's params that is compared with its values, in Python; `None` for a flag.
        by: How: `equal` to one of the values, or `part` of one that is a URI.
    """

    method: str
    member: str
    field: str
    compares: str | None = None
    by: Comparison = "equal"


@dataclass(frozen=True)
class Extension:
    """An extension that a protocol is read with.

    Attributes:
        id: Its identifier, e.g. `com.example/jobs`.
        version: Its version.
        module: The name of its package in Python.
        digest: sha256 of its effective structure.
        engine: The module with the bases of its generated `Server` and `Client`; empty where there is none.
        settings: Who declares it -> the definition of the settings that stand beside its id.
        meta_keys: The keys of `_meta` that it defines.
        alternatives: Method of core -> the definitions of the extension that may answer it instead.
        filters: What it adds to the filter of subscriptions.
        stale: Notification -> the methods whose results it makes stale.
        extends: Definition of core -> the definition with the members that it adds there.
        doc: What it is for.
    """

    id: str
    version: str
    module: str
    digest: str
    engine: str = ""
    settings: tuple[tuple[Sender, str], ...] = ()
    meta_keys: tuple[MetaKey, ...] = ()
    alternatives: tuple[tuple[str, tuple[str, ...]], ...] = ()
    filters: tuple[Filter, ...] = ()
    stale: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extends: tuple[tuple[str, str], ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class Protocol:
    """One revision, as everything downstream sees it.

    Attributes:
        revision: Its name.
        era: `stateful` or `stateless`.
        digest: sha256 of the effective structure it was read from.
        definitions: Name -> definition, in alphabetical order.
        methods: All methods, in alphabetical order.
        errors: Error codes, in ascending order.
        capabilities: Everything that either side may declare.
        facts: What a connection must know beside that.
        origin: Where its words come from: `docs.toml`, or the file itself.
        corrections: The known mistakes that were corrected in a file of others.
        decisions: How the schema was read where it breaks a rule; empty in a strict reading.
        extensions: Those that it is read with, in the order in which they were named.
    """

    revision: str
    era: str
    digest: str
    definitions: Mapping[str, Definition]
    methods: tuple[Method, ...]
    errors: tuple[ErrorCode, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    facts: Facts = field(default_factory=Facts)
    origin: Origin = "file"
    corrections: tuple[Correction, ...] = ()
    decisions: tuple[Decision, ...] = ()
    extensions: tuple[Extension, ...] = ()

    def resolve(self, type: Type) -> Type:
        """Return `type` with references to other definitions followed, until it is something else."""
        while isinstance(type, Ref):
            type = self.definitions[type.name].type
        return type

    def accepts_null(self, type: Type) -> bool:
        """Return whether `null` is a value of `type`."""
        match self.resolve(type):
            case Free():
                return True
            case Scalar(kind):
                return kind == "null"
            case Const(values):
                return None in values
            case Union(members):
                return any(self.accepts_null(member) for member in members)
            case _:
                return False

    def reach(self, roots: Iterable[str], within: Container[str] | None = None) -> dict[str, None]:
        """Return `roots` and every definition that they lead to, in the order in which they are found.

        Args:
            roots: Names of definitions.
            within: The definitions to stay in; by default all.
        """
        found: dict[str, None] = {}
        pending = list(roots)
        while pending:
            name = pending.pop()
            if name not in found and (within is None or name in within):
                found[name] = None
                pending.extend(references(self.definitions[name].type))
        return found


__all__ = [
    "Array",
    "Capability",
    "Carrier",
    "Comparison",
    "Const",
    "Definition",
    "ErrorCode",
    "Extension",
    "Facts",
    "Field",
    "Filter",
    "Free",
    "HeaderParams",
    "Json",
    "Kind",
    "Map",
    "MetaKey",
    "Method",
    "Need",
    "Object",
    "Protocol",
    "Ref",
    "Scalar",
    "Sender",
    "Truncation",
    "Type",
    "Union",
    "map_parts",
    "parts",
    "references",
]
