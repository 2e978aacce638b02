"""Read the params of one revision's requests with the types of another one, from the bytes where that works."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json

from mcp_bindgen.runtime.era.stateless import ROUND
from mcp_bindgen.runtime.model.base import Model, wire_name
from mcp_bindgen.runtime.model.scalars import Json
from mcp_bindgen.runtime.model.validation import problems
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import InvalidParams
from mcp_bindgen.runtime.protocol.routing import Route, message_reader

from .bridge import ServerBridge

ERA = ("meta", *ROUND)
"""The fields of params that belong to the era: what a request says of itself, and what carries its rounds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BridgedRoute(Route):
    """The way of a request of the wire's revision to the handler of another one.

    Attributes:
        ours: The route of the same method in the server's revision.
        kind: The type that params are read with: that of the server's revision, with what the era of the wire needs.
        bridge: What is between the two revisions.
    """

    ours: Route
    kind: type[BaseModel]
    bridge: ServerBridge

    @cached_property
    def read_message(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Read a whole message in one pass, if its params need no conversion."""
        read = message_reader(self.method, self.kind)
        up = self.bridge.up.params(self.method.name)
        if up is None:
            return read

        def guarded(data: bytes) -> dict[str, Any] | None:
            return None if up.fires_in_any(data) else read(data)

        return guarded

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind)

    @cached_property
    def _native(self) -> Route:
        return Route(self.method, self.handler)

    def read(self, data: bytes | str | None) -> Any:
        """Read the typed params of a message.

        What is not valid in the revision of the wire gets the error of that one.

        Raises:
            InvalidParams: They do not fit.
            NotConvertible: The server's revision has no words for them.
        """
        self._native.read(data)
        wire: Any = {} if data is None else parse(data if isinstance(data, bytes) else data.encode())
        kept = {name: wire.pop(name) for name in self._kept if name in wire}
        return self.bridge.read_up(lambda read: self._read({**read, **kept}), self.method.name, wire)

    @cached_property
    def _kept(self) -> list[str]:
        """The members that belong to the era of the wire, and are no business of conversions."""
        return [] if self.kind is self.ours.method.params else [wire_name(name) for name in ERA if name in self._fields]

    @property
    def _fields(self) -> Any:
        return self.method.params.model_fields

    def _read(self, wire: dict[str, Any]) -> Any:
        data = to_json(wire)
        try:
            return self._reader.validate_json(data)
        except ValidationError as error:
            raise InvalidParams(self.method.name, problems(error, "params", data)) from None


@cache
def params_kind(ours: Any, theirs: Any, *, same_era: bool) -> type[BaseModel] | None:
    """Return the type that params of the wire are read with; `None` where they are no objects with fields.

    Across eras the members that belong to the era are those of the wire's revision: `_meta`, and in the stateless era
    what a round of a request carries.

    Args:
        ours: The type of the params in the server's revision.
        theirs: Their type in the revision of the wire.
        same_era: Whether both revisions are of the same era.
    """
    if not (_is_model(ours) and _is_model(theirs)):
        return None
    if same_era:
        found: type[BaseModel] = ours
        return found
    fields: dict[str, Any] = {}
    for name in ERA:
        if name in theirs.model_fields:
            field = copy(theirs.model_fields[name])
            fields[name] = (field.annotation, field)
        elif name == "meta":
            fields[name] = (dict[str, Json] | None, None)
    return create_model(ours.__name__, __base__=ours, __module__=ours.__module__, **fields)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)
