"""Routes that read params of one revision in the types of another, from bytes if they need no conversion."""

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

from .converter import Bridge, fields_of

_ERA_FIELDS = ("meta", *ROUND)  # of params: the metadata of a request, and the state of its rounds


@dataclass(frozen=True, eq=False, kw_only=True)
class BridgedRoute(Route):
    """Route of a request of the wire revision to the handler of another revision.

    Attributes:
        kind: The type that params are read with; see `params_kind`.
        bridge: The bridge between the two revisions.
    """

    kind: type[BaseModel]
    bridge: Bridge

    @cached_property
    def read_message(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Read a whole message in one pass, or return None if its params may need conversion."""
        read = message_reader(self.method, self.kind)
        conversion = self.bridge.incoming.chain.params(self.method.name)
        if conversion is None:
            return read
        return lambda data: None if conversion.may_apply_to_any(data) else read(data)

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind)

    @cached_property
    def _native(self) -> Route:
        return Route(self.method, self.handler)

    @cached_property
    def _era_members(self) -> list[str]:
        """The members that belong to the era of the wire revision, and are not converted."""
        known = {} if self.bridge.same_era else fields_of(self.method.params)
        return [wire_name(name) for name in _ERA_FIELDS if name in known]

    def read(self, data: bytes | str | None) -> Any:
        """Read the typed params of a message. Errors of the wire revision come first.

        Raises:
            InvalidParams: They are not valid.
            NotConvertible: The server's revision cannot express them.
        """
        self._native.read(data)
        wire: Any = {} if data is None else parse(data if isinstance(data, bytes) else data.encode())
        kept = {name: wire.pop(name) for name in self._era_members if name in wire}
        incoming, name = self.bridge.incoming, self.method.name
        converted = incoming.convert("params", name, wire, self.bridge.losses())
        return incoming.read("params", name, converted, lambda wire: self._read({**wire, **kept}))

    def _read(self, wire: dict[str, Any]) -> Any:
        data = to_json(wire)
        try:
            return self._reader.validate_json(data)
        except ValidationError as error:
            raise InvalidParams(self.method.name, problems(error, "params", data)) from None


@cache
def params_kind(ours: object, theirs: object, *, same_era: bool) -> type[BaseModel] | None:
    """Return the type that params of the wire revision are read with; None if they are no objects with fields.

    Across eras, `_meta` and the members of rounds belong to the wire revision.

    Args:
        ours: The type of the params in the server's revision.
        theirs: Their type in the wire revision.
        same_era: True if both revisions are of the same era.
    """
    if not isinstance(ours, type) or not issubclass(ours, Model):
        return None
    if not isinstance(theirs, type) or not issubclass(theirs, Model):
        return None
    if same_era:
        return ours
    fields: dict[str, Any] = {"meta": (dict[str, Json] | None, None)}
    for name in _ERA_FIELDS:
        if name in theirs.model_fields:
            field = copy(theirs.model_fields[name])
            fields[name] = (field.annotation, field)
    return create_model(ours.__name__, __base__=ours, __module__=ours.__module__, **fields)
