"""Context of a handler for clients of a revision other than its own."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from mcp_bindgen.runtime.protocol.capabilities import missing
from mcp_bindgen.runtime.protocol.errors import CapabilityMissing, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, Request
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .converter import Bridge, implementation, plain
from .step import LossReport, NotConvertible


class KeepsHandlers:
    """Mixin of servers whose handlers go on where they asked, although the client answers in another request."""


class BridgedContext(Context):
    """Mixin before the generated context of a server's revision.

    The handler sees everything in its own revision, and its messages are converted.

    Attributes:
        bridge: The bridge between the two revisions.
        server: The server that the user wrote.
    """

    bridge: ClassVar[Bridge]
    server: ClassVar[Server]

    @property
    def _words(self) -> Revision:
        return self.bridge.home.revision

    @property
    def _losses(self) -> LossReport:
        return self.bridge.losses(self.link)

    @property
    def session(self) -> Session:
        """The connection, or the subscription in its place for stateless clients."""
        return cast(Session, self.link) if isinstance(self.link, Subscription) else super().session

    @property
    def peer_info(self) -> Any:
        """The `Implementation` with which the client introduced itself, or None."""
        return implementation(self._words, super().peer_info)

    def check(self, method: Method, params: object) -> None:
        """Raise `CapabilityMissing` if a method, or these params of it, need a capability that is not declared."""
        agreed = self.negotiated
        if agreed is not None:
            capability = missing(method, self._words, agreed.dispatcher.role, agreed.declared, params)
            if capability is not None:
                raise agreed.missing_capability_error(method.name, capability)

    async def _ask(self, key: str | None, method: Request[Any, Any, Any], params: object) -> Any:
        bridge, losses = self.bridge, self._losses
        theirs = bridge.outgoing.counterpart(method)
        if theirs is method:
            return await super()._ask(key, method, params)
        assert isinstance(theirs, Request)
        if theirs.carrier == "embedded":
            if self._questions is None:
                raise NotConvertible(method.name, "the handler cannot ask: its request cannot be answered in rounds")
            if not self._words.era.is_stateless and not isinstance(self.server, KeepsHandlers):
                reason = "a handler that asks runs again from its beginning when it is answered"
                bridge.losses().record(type(self.server).__name__, reason)
        try:
            answer = await super()._ask(key, theirs, bridge.outgoing.params(theirs, plain(params), losses))
        except NotConvertible as error:
            if error.capability is not None:
                raise CapabilityMissing(method.name, error.capability.split(".")) from error
            raise
        except ProtocolError as error:
            raise bridge.incoming.error(method.name, error) from error.__cause__
        return bridge.incoming.result(method, plain(answer), losses)

    async def notify(self, method: Notification[Any], params: object) -> None:
        """Send a notification like `Context.notify`; leave it out if the client's revision cannot express it."""
        if self._counterpart(method) is not None:
            await super().notify(method, params)

    async def _tell(self, method: Notification[Any], params: object) -> None:
        theirs = self._counterpart(method)
        if theirs is None:
            return
        if theirs is method:
            await super()._tell(method, params)
            return
        try:
            told = self.bridge.outgoing.params(theirs, plain(params), self._losses)
        except NotConvertible as error:
            self._losses.record(error.place, error.reason)
            return
        if theirs.filter is None or isinstance(self.link, Subscription):
            await super()._tell(theirs, told)
            return
        for link in self.server.audience:  # a client that asks and listens does so in two requests
            if isinstance(link, Subscription) and link.ready and self._is_same_client(link):
                await link.notify(theirs, told)

    def _counterpart(self, method: Notification[Any]) -> Notification[Any] | None:
        """Return the notification of the client's revision; record the loss and return None if there is none."""
        try:
            return cast("Notification[Any]", self.bridge.outgoing.counterpart(method))
        except NotConvertible as error:
            self._losses.record(error.place, error.reason)
            return None

    def _is_same_client(self, link: Subscription) -> bool:
        """Return True if a subscription is of the principal that sent this request."""
        is_bridged = link.negotiated.dispatcher.revision is self.bridge.wire
        return is_bridged and self.origin.principal == link.origin.principal
