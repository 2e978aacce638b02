"""Streams of change notifications that a client asks for (MCP 2026-07-28, "Subscriptions")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from . import jsonrpc
from .calls import Link
from .capabilities import is_declared
from .errors import MethodNotFound
from .guards import is_array
from .jsonrpc import RequestId
from .metadata import SUBSCRIPTION
from .methods import Notification
from .vocabulary import ACKNOWLEDGED, Vocabulary

if TYPE_CHECKING:
    from .context import Context
    from .server import Server
    from .terms import Terms


class Subscription:
    """The way to a client that listens: what it did not ask for is not sent.

    Args:
        context: The context of the request that listens.
        agreed: Which notifications it gets, in the form of a filter.

    Attributes:
        ready: Whether the client may be told something already.
        terms: What the request that listens may count on.
    """

    ready = True

    def __init__(self, context: Context, agreed: Any) -> None:
        self.terms: Terms | None = context.terms
        self._context = context
        self._agreed = agreed
        self._end = anyio.Event()

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuses: who listens cannot be asked."""
        raise MethodNotFound(method.name)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Sends a notification, if it was asked for."""
        agreed = getattr(self._agreed, method.filter) if method.filter is not None else None
        if agreed is True or (is_array(agreed) and any(_is_part(params.uri, uri) for uri in agreed)):
            await self.send(method, {} if params is None else jsonrpc.plain(params))

    async def send(self, method: Notification[Any], wire: dict[str, Any]) -> None:
        """Sends a notification in the name of this subscription."""
        id_ = self._context.request_id
        wire["_meta"] = {**wire.get("_meta", {}), SUBSCRIPTION: id_}
        await self._context.link.notify(method, jsonrpc.typed_params(method, wire), related=id_)

    def metadata(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def end(self) -> None:
        """Ends the subscription in good order."""
        self._end.set()

    async def ended(self) -> None:
        """Waits for the end."""
        await self._end.wait()


async def listen(server: Server, words: Vocabulary, offers: Mapping[str, Any], params: Any, context: Context) -> Any:
    """Answers `subscriptions/listen`: serves a subscription until either side ends it."""
    wanted = params.notifications
    agreed = {
        method.filter: getattr(wanted, method.filter)
        for method in words.methods.values()
        if method.kind == "notification"
        and method.filter is not None
        and getattr(wanted, method.filter)
        and is_declared(offers, method.capabilities["server"].partition(".")[2])
    }
    subscription = Subscription(context, type(wanted)(**agreed))
    acknowledged: Any = words.methods[ACKNOWLEDGED]
    await subscription.send(acknowledged, {"notifications": jsonrpc.plain(type(wanted)(**agreed))})
    with attached(server, subscription):
        await subscription.ended()
    return {"resultType": "complete", "_meta": {SUBSCRIPTION: context.request_id}}


def _is_part(uri: str, of: str) -> bool:
    """Whether a resource is the one that is followed, or lies below it."""
    return uri == of or uri.startswith(of.rstrip("/") + "/")


# --- who listens to a server ----------------------------------------------------------------------------------


def audience(server: object) -> list[Link]:
    """The links to the clients of a server: connections, and subscriptions."""
    found: list[Link] = server.__dict__.setdefault("_audience", [])
    return found


@contextmanager
def attached(server: object, link: Link) -> Iterator[None]:
    """Makes a link part of the audience for a while."""
    audience(server).append(link)
    try:
        yield
    finally:
        audience(server).remove(link)
