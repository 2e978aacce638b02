"""Conversion of typed messages from one revision to another, for servers and clients; collisions of open fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache, cached_property, partial
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import fields_filled_in, fields_of
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.session import Session

from .chain import Chain, LossReport, NotConvertible, Part, known_chain

Location: TypeAlias = Sequence[str | int]
"""Location in a validation error: members, indexes, and names of alternatives, which are skipped."""

_LOSSES = LossReport(lambda place, reason: log.warning("%s: %s", place, reason))
"""Losses of names and versions that a connection keeps."""

_MAX_READS = 10  # each reports all errors, except those that are hidden by an error above them


def read_without_collisions(read: Callable[[Any], T], wire: Any, names: Collection[str]) -> T:
    """Read a payload; if that fails, read it again without the colliding members.

    Args:
        read: Reads the payload from its wire form; raises `ProtocolError` if it is not valid.
        wire: The payload, converted; it is edited in place.
        names: `Chain.field_collisions` of the payload.

    Raises:
        ProtocolError: The payload is not valid without them either; the error describes the whole payload.
    """
    try:
        return read(wire)
    except ProtocolError as error:
        first = problem = error
    dropped: list[str] = []
    for _ in range(_MAX_READS if names else 0):
        found = drop_collisions(wire, _locations(problem), names)
        if not found:
            break
        dropped += found
        try:
            typed = read(wire)
        except ProtocolError as error:
            problem = error
            continue
        log.debug("left out, because a later revision types the name: %s", ", ".join(sorted(set(dropped))))
        return typed
    raise first


def _locations(error: ProtocolError) -> list[Location]:
    """Return the locations of validation errors, which are the context of a `ProtocolError`."""
    cause = error.__context__
    if not isinstance(cause, ValidationError):
        return []
    return [one["loc"] for one in cause.errors(include_url=False, include_context=False, include_input=False)]


def drop_collisions(value: Any, locations: Iterable[Location], names: Collection[str]) -> list[str]:
    """Drop the members at the locations of errors whose names collide; `value` is edited in place.

    Args:
        value: The payload, converted and found invalid in the target.
        locations: The locations of the errors. If no colliding member is on the path to any of them, all colliding
            members below all of them are dropped: a validator that tried several alternatives knows no better.
        names: `Chain.field_collisions` of the payload.

    Returns:
        The names that were dropped; without any, the payload is invalid for another reason.
    """
    paths = [_path(value, location) for location in locations]
    dropped = [name for path in paths for name in _dropped_on(value, path, names)]
    if dropped or not paths:
        return dropped
    shared = paths[0]
    for path in paths:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    for part in shared:
        value = value[part]
    return _dropped_below(value, names)


def _path(value: object, location: Location) -> tuple[str | int, ...]:
    """Return the longest path that a location describes; of several, the path to its end."""
    paths: dict[tuple[str | int, ...], Any] = {(): value}
    for part in location:
        paths |= {(*path, part): node[part] for path, node in paths.items() if _has(node, part)}
    return max(reversed(paths), key=len)


def _has(node: object, part: str | int) -> bool:
    if isinstance(part, str):
        return is_object(node) and part in node
    return is_array(node) and 0 <= part < len(node)


def _dropped_on(node: Any, path: Location, names: Collection[str]) -> list[str]:
    for part in path:
        if not _has(node, part):
            break  # dropped already
        if isinstance(part, str) and part in names:
            del node[part]
            return [part]
        node = node[part]
    return []


def _dropped_below(node: object, names: Collection[str]) -> list[str]:
    if is_array(node):
        return [name for item in node for name in _dropped_below(item, names)]
    if not is_object(node):
        return []
    own = [name for name in node if name in names]
    for name in own:
        del node[name]
    return own + [name for item in node.values() for name in _dropped_below(item, names)]


T = TypeVar("T")


class Converter:
    """Conversion of messages; the steps are imported on first use.

    Args:
        source: The revision of the input.
        target: The revision of the output.
        is_incoming: True if the input is from a peer, so that params which the target cannot express are invalid.

    Attributes:
        source: The same.
        target: The same.
    """

    def __init__(self, source: Revision, target: Revision, *, is_incoming: bool = False) -> None:
        self.source = source
        self.target = target
        self._is_incoming = is_incoming

    @cached_property
    def chain(self) -> Chain:
        """The steps; raises `LookupError` if no steps lead from the source to the target."""
        return known_chain(self.source.name, self.target.name)

    def name(self, method: str) -> str:
        """Return the name of a method of the source in the target."""
        return method if method in self.target.methods else self.chain.name(method)

    def counterpart(self, method: Method) -> Method:
        """Return the method of the target for a method of the source, of the same kind.

        A method that belongs to no revision and no extension is returned unchanged.

        Raises:
            NotConvertible: The target has no such method.
        """
        if method.extension is None and method.name not in self.source.methods:
            return method
        found = self.target.methods.get(self.name(method.name))
        if found is not None and found.kind == method.kind:
            return found
        raise NotConvertible(method.name, self.chain.absent(method.name) or f"MCP {self.target} does not have it")

    def convert(self, part: Part, name: str, wire: Any, losses: LossReport, params: object = None) -> Any:
        """Return a payload of a method in wire form, which may be edited in place; raise `NotConvertible`.

        Args:
            part: The part of the method.
            name: The method.
            wire: The payload.
            losses: The report of the connection.
            params: The params of a result's request, in the types of the revision that sent them.
        """
        conversion = self.chain.conversion(part, name)
        read = partial(deepcopy, wire) if part == "params" else partial(plain, params)
        try:
            return wire if conversion is None else conversion.applied(wire, losses, read)
        except NotConvertible as error:
            if self._is_incoming and part == "params":
                error.code = INVALID_PARAMS
            raise

    def read(self, part: Part, name: str, wire: Any, read: Callable[[Any], T]) -> T:
        """Return a converted payload as `read` does, without members whose names collide."""
        return read_without_collisions(read, wire, self.chain.field_collisions(part, name))

    def params(self, method: Method, wire: Any, losses: LossReport) -> Any:
        """Return params of the source, in wire form, in the types of a method of the target.

        Raises:
            NotConvertible: The target cannot express them.
            InvalidParams: They are not valid in the target.
        """
        return self.typed_params(method, self.convert("params", method.name, wire, losses))

    def notification(
        self, method: Notification[Any], params: object, losses: LossReport
    ) -> tuple[Notification[Any], Any]:
        """Return a notification of the source, with its typed params, in the target.

        Raises:
            NotConvertible: The target cannot express it.
        """
        theirs = self.counterpart(method)
        assert isinstance(theirs, Notification)
        return theirs, params if theirs is method else self.params(theirs, plain(params), losses)

    def typed_params(self, method: Method, wire: Any) -> Any:
        """Return converted params in the types of a method of the target; raise `InvalidParams`."""
        return None if method.params is None else self.read("params", method.name, wire, _reader(method))

    def result(self, method: RequestMethod[Any, Any, Any], wire: Any, losses: LossReport, params: object) -> Any:
        """Return a result of the source, in wire form, in the types of a method of the target; `params` asked for it.

        Raises:
            NotConvertible: The target cannot express it.
            ProtocolError: It is not valid in the target.
        """
        converted = self.convert("results", method.name, wire, losses, params)
        return self.read("results", method.name, converted, partial(jsonrpc.typed_result, method))

    def error(self, method: str, error: ProtocolError) -> ProtocolError:
        """Return an error with the code of the target; the same error if its code is the same."""
        code = self.chain.error(method, error.code)
        return error if code == error.code else ProtocolError(code, error.message, error.data)

    def result_writer(
        self,
        method: RequestMethod[Any, Any, Any],
        ours: RequestMethod[Any, Any, Any],
        losses: Callable[[object], LossReport],
    ) -> Callable[[Any, object, object], Any]:
        """Return a function that writes results of a server.

        It takes a result, its link and the params of its request. It returns the same result if nothing needs
        conversion, else JSON text, or the wire form if the era of the target adds members to it; it raises
        `NotConvertible`. Members that only the era of the source needs, and whose values constructors fill in, are not
        written.

        Args:
            method: The method of the target.
            ours: The method of the source.
            losses: Returns the report of a link.
        """
        conversion, collisions = self.chain.results(method.name), self.chain.field_collisions("results", method.name)
        if conversion is None and not collisions:
            return lambda result, link, params: result
        colliding = tuple(b'"%b":' % name.encode() for name in collisions)
        kind, is_stateless = ours.result, self.target.era.is_stateless
        has_prefilter = conversion is not None and conversion.prefilter
        known = fields_of(method.result)
        filled = fields_filled_in(kind) if has_prefilter else {}
        source_era = {name for name in filled if name not in known} or None

        def write(result: Any, link: object, params: object) -> Any:
            if result is None:
                return None
            data = jsonrpc.write_result(result, exclude=source_era if type(result) is kind else None)
            is_converted = conversion is not None and conversion.may_apply(data)
            may_collide = any(name in data for name in colliding)
            wire = None
            if is_converted and conversion is not None:
                wire = conversion.applied(from_json(data), losses(link), partial(plain, params))
                if is_stateless and not may_collide:
                    return wire
                data = to_json(wire)
            if may_collide and not _is_valid(method, data):
                wire = from_json(data) if wire is None else wire
                with suppress(ProtocolError):  # a result that is invalid for another reason stays invalid
                    read_without_collisions(partial(jsonrpc.typed_result, method), wire, collisions)
                data = to_json(wire)
            return wire if is_stateless and wire is not None else jsonrpc.Written(data)

        return write


class Bridge:
    """Both directions between the revision of a server or client and the revision of its connections.

    Args:
        home: The routes of the server or client.
        wire: The revision of the connections.

    Attributes:
        home: The same.
        wire: The same.
        incoming: Converts messages of the connections.
        outgoing: Converts messages of the server or client.
    """

    def __init__(self, home: Dispatcher, wire: Revision) -> None:
        self.home = home
        self.wire = wire
        self.incoming: Converter = Converter(wire, home.revision, is_incoming=True)
        self.outgoing: Converter = Converter(home.revision, wire)
        self._shared = LossReport(self._warn)
        self._reports: WeakKeyDictionary[Session, LossReport] = WeakKeyDictionary()

    @property
    def same_era(self) -> bool:
        """True if both revisions are of the same era."""
        return self.home.revision.era is self.wire.era

    def losses(self, link: object = None) -> LossReport:
        """Return the report of a connection; stateless requests share one."""
        if not isinstance(link, Session):
            return self._shared
        return self._reports.setdefault(link, LossReport(self._warn))

    def _warn(self, place: str, reason: str) -> None:
        peer = "client" if self.home.role == "server" else "server"
        log.warning("to a %s of %s: %s: %s", peer, self.wire, place, reason)


def plain(value: object) -> Any:
    """Return params or a result in wire form; None becomes an empty object."""
    return {} if value is None else jsonrpc.plain(value)


def implementation(source: Revision, target: Revision, value: object) -> Any:
    """Return an `Implementation` in the types of a revision, without members that do not fit there; None for None.

    Raises:
        NotConvertible: A rule refuses it, or the name or the version does not fit there.
    """
    if value is None:
        return None
    kind, steps = target.types.Implementation, known_chain(source.name, target.name)
    wire = steps.implementation(plain(value), _LOSSES)
    with suppress(ValueError):
        return kind.model_validate(wire)
    try:
        return kind(name=wire["name"], version=wire["version"])
    except ValidationError as error:
        first = error.errors()[0]
        raise NotConvertible("Implementation", f"MCP {target}: {first['msg']}", pointer=f"/{first['loc'][0]}") from None


@cache
def _reader(method: Method) -> Callable[[Any], Any]:
    route = Route(method, "")
    return lambda wire: route.read(to_json(wire))


def _is_valid(method: RequestMethod[Any, Any, Any], data: bytes) -> bool:
    try:
        jsonrpc.result_reader(method).validate_json(data)
    except ValidationError:
        return False
    return True
