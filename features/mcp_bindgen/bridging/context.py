"""Give a handler of one revision its context for clients of another one."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import missing
from mcp_bindgen.runtime.protocol.errors import CapabilityMissing, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, Request
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .bridge import ServerBridge
from .step import NotConvertible


class BridgedContext(Context):
    """Precede the generated context of a server's revision in the classes that serve other ones.

    The handler is told everything in the words of its own revision, and what it sends is converted.

    Attributes:
        bridge: What is between the two revisions.
    """

    bridge: ClassVar[ServerBridge]

    @property
    def _words(self) -> Revision:
        return self.bridge.ours.revision

    @property
    def session(self) -> Session:
        """The connection, or the subscription that stands for it where clients have none otherwise."""
        return cast(Session, self.link) if isinstance(self.link, Subscription) else super().session

    @property
    def peer_info(self) -> Any:
        """How the other side introduced itself: an `Implementation`, or `None`."""
        found = super().peer_info
        return found and implementation(self._words, jsonrpc.plain(found))

    def check(self, method: Method, params: Any) -> None:
        """Raise `CapabilityMissing` when a method, or these params of it, need a capability that was not declared."""
        agreed = self.negotiated
        if agreed is not None:
            capability = missing(method, self._words, agreed.dispatcher.role, agreed.declared, params)
            if capability is not None:
                raise agreed.missing_capability_error(method.name, capability)

    # --- questions --------------------------------------------------------------------------------------------

    async def _ask(self, key: str | None, method: Request[Any, Any, Any], params: Any) -> Any:
        bridge = self.bridge
        if bridge.is_own(method):
            return await super()._ask(key, method, params)
        theirs = bridge.counterpart(method)
        if not isinstance(theirs, Request):
            raise NotConvertible(method.name, bridge.reason(method))
        if theirs.carrier == "embedded":
            if self._questions is None:
                raise NotConvertible(method.name, "the request that runs is not one that may be answered in rounds")
            bridge.note_rounds()
        try:
            told = bridge.params_down(theirs, params, self.link)
            answer = await super()._ask(key, theirs, told)
        except NotConvertible as error:
            if error.capability is not None:
                raise CapabilityMissing(method.name, error.capability.split(".")) from error
            raise
        except ProtocolError as error:
            raise bridge.error(bridge.up, method.name, error) from error.__cause__
        return bridge.result_up(method, answer, self.link)

    # --- notifications ----------------------------------------------------------------------------------------

    async def notify(self, method: Notification[Any], params: Any) -> None:
        """Send a notification, as `Context.notify` does; what the client's revision has no words for is left out."""
        bridge = self.bridge
        if not bridge.is_own(method) and bridge.counterpart(method) is None:
            bridge.notes(self.link).lost(method.name, bridge.reason(method))
            return
        await super().notify(method, params)

    async def _tell(self, method: Notification[Any], params: Any) -> None:
        bridge = self.bridge
        if bridge.is_own(method):
            await super()._tell(method, params)
            return
        theirs = bridge.counterpart(method)
        assert isinstance(theirs, Notification)
        try:
            told = bridge.params_down(theirs, params, self.link)
        except NotConvertible as error:
            bridge.notes(self.link).lost(error.place, error.reason)
            return
        if theirs.filter is None or isinstance(self.link, Subscription):
            await super()._tell(theirs, told)
            return
        for link in bridge.server.audience:  # who asks and who listens are two requests of one client
            if isinstance(link, Subscription) and link.ready and self._is_theirs(link):
                await link.notify(theirs, told)

    def _is_theirs(self, link: Subscription) -> bool:
        """Tell whether a subscription is of the client that this request is of, as far as anybody knows."""
        bridged = link.negotiated.dispatcher.revision is self.bridge.wire
        return bridged and self.origin.principal == link.origin.principal


def implementation(revision: Revision, wire: dict[str, Any]) -> Any:
    """Return an introduction, typed by a revision: without those members that it has another use for."""
    kind = revision.types.Implementation
    try:
        return kind.model_validate(wire)
    except ValueError:
        return kind(name=wire["name"], version=wire["version"])
