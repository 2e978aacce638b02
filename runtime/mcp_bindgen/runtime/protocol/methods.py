"""Descriptors of methods, as generated tables hold them, and the method names that the runtime knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeAlias, cast, get_args, get_origin

from typing_extensions import TypeVar

from ..model.base import fields_of, optional
from ..model.json_types import is_array

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
PING = "ping"
SET_LEVEL = "logging/setLevel"
DISCOVER = "server/discover"
CALL_TOOL = "tools/call"
GET_PROMPT = "prompts/get"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
COMPLETE = "completion/complete"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
LIST_ROOTS = "roots/list"
ELICITATION_COMPLETE = "notifications/elicitation/complete"
UPDATED = "notifications/resources/updated"
PROGRESS = "notifications/progress"


Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer", default=Result)
Known = TypeVar("Known")
Other = TypeVar("Other")

Role = Literal["client", "server"]
OTHER_ROLE: Mapping[Role, Role] = {"client": "server", "server": "client"}
Sender = Literal["client", "server", "both"]
Carrier = Literal["message", "embedded"]

Path: TypeAlias = tuple[str, ...]
"""A capability: the side that declares it, and its path, e.g. `("server", "resources", "subscribe")`."""


@dataclass(frozen=True, eq=False)
class HeaderParams:
    """Fields for HTTP headers that repeat arguments of a request, if the schema of its target asks for them.

    Attributes:
        listed_by: Method that lists the targets.
        items: The field of its result that holds the items.
        name: The field by which an item is named.
        schema: The field of an item with the JSON Schema of its arguments.
        arguments: The field of the request's params with the arguments.
    """

    listed_by: str
    items: str
    name: str
    schema: str
    arguments: str


@dataclass(frozen=True)
class Truncation:
    """A list of limited length in a result; all but `max_items` are names of fields.

    Attributes:
        holder: Field that holds the list.
        values: The list.
        total: How many values there are.
        more: True if there are more.
        max_items: How many values may be sent.
    """

    holder: str
    values: str
    total: str
    more: str
    max_items: int

    def applied(self, result: Any) -> tuple[Any, int]:
        """Return a typed result with its first values only and with how many there are; and how many were left out."""
        holder = optional(result, self.holder)
        values = optional(holder, self.values) or ()
        excess = len(values) - self.max_items
        if excess <= 0:
            return result, 0
        total = getattr(holder, self.total)
        total = len(values) if total is None else total
        truncated = {self.values: values[: self.max_items], self.more: True, self.total: total}
        return result.model_copy(update={self.holder: holder.model_copy(update=truncated)}), excess


@dataclass(frozen=True)
class Need:
    """A capability that a request needs because of a field of its params.

    Attributes:
        field: The field of the params.
        capability: The capability, e.g. `("client", "elicitation", "url")`.
        values: The values of the field that need it, `None` among them if its absence does; empty if any value does.
        tolerated: True if only the sender checks it.
        implied: True if declaring the capability above it, and nothing else below that, declares this capability.
    """

    field: str
    capability: Path
    values: tuple[Any, ...] = ()
    tolerated: bool = False
    implied: bool = False

    @property
    def is_mode(self) -> bool:
        """True if the field selects a mode of the request, so that its handler has to know the mode."""
        return bool(self.values) and not self.tolerated

    def arises(self, params: object) -> bool:
        """Return whether typed params need the capability."""
        value = optional(params, self.field)
        return value in self.values if self.values else value is not None


@dataclass(frozen=True)
class Filter:
    """The member of a subscription's filter that asks for a notification.

    Attributes:
        member: The field of the filter.
        compares: The field of the notification's params that is compared with the values there; `None` for a flag.
        by: Comparison: `equal` to a value, or `part` of a value that is a URI.
    """

    member: str
    compares: str | None = None
    by: Literal["equal", "part"] = "equal"

    def index(self, agreed: object) -> bool | frozenset[str]:
        """Return the member of a typed filter: a flag, or the keys of a list, in which notifications are looked up."""
        wanted = optional(agreed, self.member)
        if self.compares is None or not is_array(wanted):
            return wanted is True
        from .uris import followed_key  # few servers have subscriptions

        return frozenset(map(followed_key, wanted) if self.by == "part" else wanted)

    def asks_for(self, index: bool | frozenset[str], params: object) -> bool:
        """Return whether a filter asks for a notification with these typed params, given the result of `index`."""
        if isinstance(index, bool):
            return index
        from .uris import lineage

        value: str = getattr(params, self.compares or "")
        return value in index if self.by == "equal" else not index.isdisjoint(lineage(value))


@dataclass(frozen=True, eq=False)
class _Method(Generic[Params]):
    """A method of the protocol.

    Attributes:
        name: The method's name on the wire, e.g. `tools/call`.
        sender: Side that may send it.
        params: The type of its params, or `None` when it has none.
        params_required: True if `params` must be there even if empty.
        carrier: A message of its own, or embedded in results and params of other messages.
        capabilities: Sender -> the capability that must be declared before that side may send it.
        needs: Capabilities that values of its params need in addition.
        named_by: Field of its params with the name of its target, if HTTP headers repeat it.
        extension: The id of the extension that brings it; `None` for core's.
        declared_by: Sides that must have declared this extension.
        setting: The setting that the receiver must have declared as true with it, if there is one.
    """

    name: str
    sender: Sender
    params: Any
    _: KW_ONLY
    params_required: bool = True
    carrier: Carrier = "message"
    capabilities: Mapping[str, Path] = field(default_factory=dict[str, Path])
    needs: tuple[Need, ...] = ()
    named_by: str | None = None
    extension: str | None = None
    declared_by: Sender = "both"
    setting: str | None = None


@dataclass(frozen=True, eq=False)
class RequestMethod(_Method[Params], Generic[Params, Result, Answer]):
    """A method that is answered.

    `Params` and `Result` are the types of its params and of its usual result; `Answer` is the type of all its
    results.

    Attributes:
        result: The type that usually answers it.
        alternatives: Types that may answer it instead.
        opt_in: The field of its params that asks for an alternative, if it must be asked for.
        truncation: The list of limited length in its result, if there is one.
        items: The field of its result with the entries, if it lists something page by page.
        header_params: Where HTTP headers may repeat its arguments, if they may.
    """

    kind: ClassVar[Literal["request"]] = "request"
    result: Any
    alternatives: tuple[type[Any], ...] = ()
    opt_in: str | None = None
    truncation: Truncation | None = None
    items: str | None = None
    header_params: HeaderParams | None = None

    @cached_property
    def answers(self) -> tuple[type[Any], ...]:
        """Classes of its possible results."""
        return tuple(classes(self.result, *self.alternatives))

    def lacks_opt_in(self, params: object, result: object) -> bool:
        """Return True if a result is an alternative that the params had to ask for, and did not."""
        if self.opt_in is None or not isinstance(result, self.alternatives):
            return False
        return optional(params, self.opt_in) is None

    @cached_property
    def result_types(self) -> frozenset[str | None]:
        """Values of `resultType` of its possible results; `None` for a result without."""
        return frozenset(map(result_type, self.answers))

    @cached_property
    def is_cacheable(self) -> bool:
        """True if its result states a lifetime and a scope for caches (MCP 2026-07-28, "Caching")."""
        return any({"ttl_ms", "cache_scope"} <= fields_of(one).keys() for one in classes(self.result))


def classes(*kinds: Any) -> Iterator[type[Any]]:
    """Yield the classes that types stand for."""
    for kind in kinds:
        kind = getattr(kind, "__value__", kind)
        if isinstance(kind, type) and get_origin(kind) is None:
            yield kind
        else:
            yield from classes(*(get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)))


@dataclass(frozen=True, eq=False)
class Notification(_Method[Params]):
    """A method without a response.

    Attributes:
        filter: The member of a subscription's filter that asks for it, if it comes by subscription.
    """

    kind: ClassVar[Literal["notification"]] = "notification"
    answers: ClassVar[tuple[type[Any], ...]] = ()
    filter: Filter | None = None


def _result_type(kind: Any) -> str | None:
    field = fields_of(kind).get("result_type")
    return field.default if field is not None and isinstance(field.default, str) else None


result_type: Callable[[Any], str | None] = cache(_result_type)
"""Return the `resultType` of a class of results; `None` if it has none."""


Method = RequestMethod[Any, Any] | Notification[Any]
"""A method of a revision or extension; generated modules `methods` hold one for each."""


@cache
def untyped(method: RequestMethod[Any, Any]) -> RequestMethod[Any, dict[str, Any]]:
    """Return the same method with any JSON object as its result."""
    return replace(method, result=dict[str, Any], alternatives=())


def with_alternatives(
    method: RequestMethod[Params, Result, Known], *more: type[Other]
) -> RequestMethod[Params, Result, Known | Other]:
    """Return the same request with more types that may answer it."""
    widened = replace(method, alternatives=(*method.alternatives, *more))
    return cast(RequestMethod[Params, Result, Known | Other], widened)


def filtered(methods: Mapping[str, Method]) -> list[tuple[Notification[Any], Filter]]:
    """Return the notifications that come by subscription, with the members of filters that ask for them."""
    found = (method for method in methods.values() if isinstance(method, Notification))
    return [(method, method.filter) for method in found if method.filter is not None]


def by_name(*methods: Method) -> Mapping[str, Method]:
    """Return wire name -> method."""
    return {method.name: method for method in methods}
