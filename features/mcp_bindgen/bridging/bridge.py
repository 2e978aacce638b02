"""Hold what is between a server and the clients of another revision: two chains of conversions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Request
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.session import Session

from .chain import Chain, chain
from .field_collisions import without_claims
from .step import Notes


class ServerBridge:
    """Connect a server with the clients of another revision; its steps are imported when one comes.

    Args:
        server: The server.
        ours: What it takes in its own revision.
        wire: The other revision.

    Attributes:
        server: The same.
        ours: The same.
        wire: The same.
    """

    def __init__(self, server: Any, ours: Dispatcher, wire: Revision) -> None:
        self.server = server
        self.ours = ours
        self.wire = wire
        self._notes = Notes(self._tell)
        self._notes_of: WeakKeyDictionary[Session, Notes] = WeakKeyDictionary()

    @cached_property
    def up(self) -> Chain:
        """The steps from the revision of the wire to that of the server."""
        return _known(self.wire.name, self.ours.revision.name)

    @cached_property
    def down(self) -> Chain:
        """The steps from the revision of the server to that of the wire."""
        return _known(self.ours.revision.name, self.wire.name)

    @property
    def is_stateless(self) -> bool:
        """Whether the server's revision is of the stateless era."""
        return self.ours.revision.era.is_stateless

    def counterpart(self, method: Method) -> Method | None:
        """Return the method of the wire's revision with the name and kind of one of the server's."""
        found = self.wire.methods.get(method.name)
        return found if found is not None and found.kind == method.kind else None

    def reason(self, method: Method) -> str:
        """Say why the wire's revision has no counterpart of a method."""
        return self.down.absent(method.name) or f"{self.wire.name} does not have it"

    def is_own(self, method: Method) -> bool:
        """Tell whether a method is one of the user's own, of no revision and no extension: it passes as it is."""
        return method.extension is None and method.name not in self.ours.revision.methods

    def note_rounds(self) -> None:
        """Say once that handlers begin anew after each question, which those of the stateful era do not expect."""
        if not self.is_stateless:
            place = type(self.server).__name__
            self._notes.lost(place, "a handler that asks runs again from its beginning when it is answered")

    # --- conversions ------------------------------------------------------------------------------------------

    def notes(self, link: Any) -> Notes:
        """Return where losses are noted: once for a connection, or once for all requests that stand alone."""
        if not isinstance(link, Session):
            return self._notes
        found = self._notes_of.get(link)
        if found is None:
            found = self._notes_of[link] = Notes(self._tell)
        return found

    def _tell(self, place: str, reason: str) -> None:
        log.warning("to a client of %s: %s: %s", self.wire.name, place, reason)

    @staticmethod
    def error(steps: Chain, method: str, error: ProtocolError) -> ProtocolError:
        """Return an error with the code that the other revision has for it; the same where that is the same."""
        code = steps.error(method, error.code)
        return error if code == error.code else ProtocolError(code, error.message, error.data)

    def writer(self, method: Request[Any, Any, Any], ours: Request[Any, Any, Any]) -> Callable[[Any, Any], Any]:
        """Return what brings results of the server into the revision of the wire.

        It takes a result and the link that it goes to, and returns the same result if nothing is to be converted, else
        its JSON text, or its wire form for the era that adds to it; it raises `NotConvertible`. What only the era of
        the server wants, and its constructors fill in, is not even written.

        Args:
            method: The method in the revision of the wire.
            ours: The same in that of the server.
        """
        conversion, claims = self.down.results(method.name), self.down.claims("results", method.name)
        if conversion is None and not claims:
            return lambda result, link: result
        guard, notes = conversion.guard if conversion is not None else (), self.notes
        claimed = tuple(b'"%b":' % name.encode() for name in claims)
        kind: Any = ours.result
        reader = jsonrpc.result_reader(method)
        is_stateless, known = self.wire.era.is_stateless, getattr(method.result, "model_fields", {})
        of_the_era = {name for name in jsonrpc.fields_filled_in(kind) if name not in known} if guard else set[str]()

        def written(result: Any, link: Any) -> Any:
            if result is None:
                return None
            if of_the_era and type(result) is kind:
                data = kind.__pydantic_serializer__.to_json(result, exclude=of_the_era)
            else:
                data = jsonrpc.write_result(result)
            fires = conversion is not None and conversion.fires(data)
            clashes = any(needle in data for needle in claimed)
            if not fires and not clashes:
                return jsonrpc.Written(data)
            wire = None
            if fires and conversion is not None:
                wire = conversion.convert(from_json(data), notes(link))
                if is_stateless and not clashes:
                    return wire
                data = to_json(wire)
            if clashes and not _is_valid(reader, data):
                wire = from_json(data) if wire is None else wire
                with suppress(ProtocolError):  # what is invalid for another reason stays so
                    without_claims(lambda wire: jsonrpc.typed_result(method, wire), wire, claims)
                data = to_json(wire)
            return wire if is_stateless and wire is not None else jsonrpc.Written(data)

        return written

    def params_up(self, ours: Route, wire: Any, link: Any = None) -> Any:
        """Return params of the wire, typed as the server's revision has them.

        Args:
            ours: The route of the server.
            wire: The params, valid in the revision of the wire. They may be edited.
            link: Where they came from, if that is known.

        Raises:
            NotConvertible: The server's revision has no words for them.
            InvalidParams: They are not valid there.
        """
        return self.read_up(lambda wire: ours.read(to_json(wire)), ours.method.name, wire, link)

    def read_up(self, read: Callable[[Any], Any], name: str, wire: Any, link: Any = None) -> Any:
        """Return the same as `params_up`, read by `read`."""
        conversion = self.up.params(name)
        if conversion is not None:
            wire = conversion.convert(wire, self.notes(link))
        return without_claims(read, wire, self.up.claims("params", name))

    def params_down(self, theirs: Method, params: Any, link: Any = None) -> Any:
        """Return params of the server, typed as the revision of the wire has them; raise `NotConvertible`."""
        if theirs.params is None:
            return None
        wire: dict[str, Any] = {} if params is None else jsonrpc.plain(params)
        conversion = self.down.params(theirs.name)
        if conversion is not None:
            wire = conversion.convert(wire, self.notes(link))
        claims = self.down.claims("params", theirs.name)
        return without_claims(lambda wire: Route(theirs, "").read(to_json(wire)), wire, claims)

    def result_up(self, ours: Request[Any, Any, Any], answer: Any, link: Any) -> Any:
        """Return the answer of a client, typed as the server's revision has it; raise `NotConvertible`."""
        wire = jsonrpc.plain(answer)
        conversion = self.up.results(ours.name)
        if conversion is not None:
            wire = conversion.convert(wire, self.notes(link))
        return without_claims(lambda wire: jsonrpc.typed_result(ours, wire), wire, self.up.claims("results", ours.name))


def _is_valid(reader: TypeAdapter[Any], data: bytes) -> bool:
    try:
        reader.validate_json(data)
    except ValidationError:
        return False
    return True


def _known(source: str, target: str) -> Chain:
    found = chain(source, target)
    if found is None:
        raise LookupError(f"no steps lead from {source} to {target}")
    return found
