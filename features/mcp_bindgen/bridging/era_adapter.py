"""Carry what a client of one era says to a server of the other one where the two have no method in common.

What both eras have is a matter of the bridges' steps; this is the rest: liveness, levels of log messages, and who is
told of changes (MCP 2026-07-28, "Subscriptions"; MCP 2025-11-25, "Resources": Subscriptions, "Logging").
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import is_declared, is_offered
from mcp_bindgen.runtime.protocol.errors import (
    AuthorizationError,
    ConnectionClosed,
    InvalidParams,
    ProtocolError,
    RequestTimeout,
)
from mcp_bindgen.runtime.protocol.methods import (
    DISCOVER,
    LISTEN,
    PING,
    SET_LEVEL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Method,
    Notification,
    filtered,
)
from mcp_bindgen.runtime.protocol.request_scope import LEVELS
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.uris import followed_key

Ask = Callable[[Any, Any], Awaitable[Any]]
Answers = Mapping[str, Ask]


class Crossing:
    """The difference between the era of a client and that of the connection; where both are the same, there is none.

    Args:
        home: The client's revision.
        carrier: The client of the wire's revision that speaks for it.

    Attributes:
        answers: Method -> what answers it, given its params in wire form, and the client of the wire's revision with
            the options to ask with; the result is in wire form, too.
    """

    def __init__(self, home: Revision, carrier: Any) -> None:
        self.answers: Answers = {}
        self._home = home
        self._carrier = carrier

    def start(self) -> None:
        """Begin, now that both sides know each other."""

    async def resume(self) -> None:
        """Say again what the server has forgotten, now that it was introduced to the client anew."""

    async def adapt(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the `_meta` of a request with what every request of the wire's revision says."""
        return {**meta, **self._carrier.link.metadata()}

    def is_wanted(self, method: Method, wire: Any) -> bool:
        """Tell whether the client wants to hear of a notification: by default of all that its connection brings."""
        return True

    @asynccontextmanager
    async def subscribed(self, wanted: Any) -> AsyncGenerator[Any]:
        """Subscribe as the client's era does; raise `MethodNotFound` where it has no such thing."""
        self._home.request(LISTEN)
        kind = _filter(self._carrier.dispatcher.revision)
        async with self._carrier.subscribed(kind.model_validate(jsonrpc.plain(wanted))) as agreed:
            yield _filter(self._home).model_validate(jsonrpc.plain(agreed))


class StatefulClient(Crossing):
    """A client of the stateful era at a stateless server: it listens all the time, with one subscription.

    Args:
        home: The client's revision.
        carrier: The client of the wire's revision that speaks for it.
        tasks: Where the subscription runs.
    """

    def __init__(self, home: Revision, carrier: Any, tasks: TaskGroup) -> None:
        super().__init__(home, carrier)
        self._tasks = tasks
        self._uris: dict[str, str] = {}  # canonical form -> as it was asked for
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self._changing = anyio.Lock()
        self.answers: Answers = {
            PING: self._ping,
            SET_LEVEL: self._set_level,
            SUBSCRIBE: self._subscribe,
            UNSUBSCRIBE: self._unsubscribe,
        }

    def start(self) -> None:
        """Ask for log messages, and for changes of lists: a stateful server tells everybody of both."""
        revision: Revision = self._carrier.dispatcher.revision
        if revision.log is not None and revision.log.name in self._carrier.dispatcher.offered(self._carrier):
            self._carrier.link.meta[revision.meta_keys["log_level"]] = LEVELS[0]
        if self._wanted():
            self._tasks.start_soon(self._start)

    async def _start(self) -> None:
        try:
            async with self._changing:
                await self._listen_anew()
        except (ProtocolError, ConnectionClosed, RequestTimeout, AuthorizationError) as error:
            log.info("the server does not tell of changes: %s", error)

    async def _ping(self, wire: Any, carrier: Any) -> Any:
        """Ask what the server offers: it has nothing simpler."""
        method = carrier.dispatcher.revision.request(DISCOVER)
        params = jsonrpc.typed_params(method, {"_meta": dict(carrier.link.metadata())})
        await carrier.with_options(fresh=True).call(method, params)
        return {}

    async def _set_level(self, wire: Any, carrier: Any) -> Any:
        """Say the level with each request from now on."""
        carrier.link.meta[carrier.dispatcher.revision.meta_keys["log_level"]] = wire["level"]
        return {}

    async def _subscribe(self, wire: Any, carrier: Any) -> Any:
        key = followed_key(wire["uri"])
        async with self._changing:
            known = key in self._uris
            self._uris.setdefault(key, wire["uri"])
            try:
                agreed = await self._listen_anew()
            except BaseException:
                if not known:
                    del self._uris[key]
                raise
            if key not in map(followed_key, agreed or ()):
                del self._uris[key]
                raise InvalidParams(SUBSCRIBE, [{"path": "params.uri", "problem": "the server does not agree to it"}])
        return {}

    async def _unsubscribe(self, wire: Any, carrier: Any) -> Any:
        async with self._changing:
            if self._uris.pop(followed_key(wire["uri"]), None):
                await self._listen_anew()
        return {}

    def _wanted(self) -> dict[str, Any]:
        """Return the filter to listen with, by field."""
        carrier = self._carrier
        wanted: dict[str, Any] = {}
        for method, filter in filtered(carrier.dispatcher.revision.methods):
            if method.name in self._home.methods and is_offered(method, carrier.server_capabilities):
                value = True if filter.compares is None else list(self._uris.values())
                if value:
                    wanted[filter.member] = value
        return wanted

    async def _listen_anew(self) -> list[str] | None:
        """Replace the subscription by one for what is wanted now; return the resources that the server agreed to."""
        carrier, former, ended, agreed = self._carrier, self._scope, self._ended, None
        wanted = self._wanted()
        self._scope, self._ended = None, anyio.Event()
        if wanted:
            self._scope = anyio.CancelScope()
            kind = _filter(carrier.dispatcher.revision)
            try:
                agreed = await self._tasks.start(self._listen, kind(**wanted), self._scope, self._ended)
            except BaseException:
                self._scope, self._ended = former, ended
                raise
        if former is not None:  # in this order nothing is missed, and nothing is told twice
            former.cancel()
            await ended.wait()
        filters = (filter for _, filter in filtered(carrier.dispatcher.revision.methods))
        return next((getattr(agreed, one.member, None) for one in filters if one.compares is not None), None)

    async def _listen(
        self, wanted: Any, scope: anyio.CancelScope, ended: anyio.Event, *, task_status: TaskStatus[Any]
    ) -> None:
        started = False
        try:
            with scope:
                async with self._carrier.subscribed(wanted) as agreed:
                    started = True
                    task_status.started(agreed)
                    await anyio.sleep_forever()
        except AuthorizationError as error:
            if not started:
                raise
            log.warning("the server tells of no changes any more: %s", error)
        finally:
            ended.set()


class StatelessClient(Crossing):
    """A client of the stateless era at a stateful server: it hears what it listens to, and nothing else.

    Args:
        home: The client's revision.
        carrier: The client of the wire's revision that speaks for it.
    """

    def __init__(self, home: Revision, carrier: Any) -> None:
        super().__init__(home, carrier)
        self._open: list[dict[str, bool | frozenset[str]]] = []
        self._uris: dict[str, list[str]] = {}  # canonical form -> as each subscription asked for it
        self._level: str | None = None
        self._changing = anyio.Lock()

    async def adapt(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the `_meta` without what the connection says, and tell the server the level of log messages."""
        level = meta.get(self._home.meta_keys.get("log_level", ""))
        revision: Revision = self._carrier.dispatcher.revision
        if level is not None and level != self._level and SET_LEVEL in revision.methods:
            method = revision.request(SET_LEVEL)
            if is_declared(self._carrier.server_capabilities, *method.capabilities["client"][1:]):
                await self._say_level(level, self._carrier.call)
        keys = self._home.meta_keys.values()
        return {key: value for key, value in meta.items() if key not in keys}

    def is_wanted(self, method: Method, wire: Any) -> bool:
        """Tell whether somebody listens to a notification."""
        ours = self._home.methods.get(method.name)
        if not isinstance(ours, Notification) or ours.filter is None:
            return True
        params = None if ours.filter.compares is None else jsonrpc.typed_params(ours, wire)
        return any(ours.filter.asks_for(one[ours.filter.member], params) for one in self._open)

    @asynccontextmanager
    async def subscribed(self, wanted: Any) -> AsyncGenerator[Any]:
        """Subscribe to each resource, and hear of changes that the server tells everybody of."""
        agreed: dict[str, Any] = {}
        uris: list[str] = []
        named: str | None = None
        theirs: Revision = self._carrier.dispatcher.revision
        for method, filter in filtered(self._home.methods):
            value = getattr(wanted, filter.member)
            known = theirs.methods.get(method.name)
            if value and known is not None and is_offered(known, self._carrier.server_capabilities):
                agreed[filter.member] = value
                if filter.compares is not None:
                    uris, named = list(dict.fromkeys(value)), filter.member
        begun: list[str] = []
        index: dict[str, bool | frozenset[str]] = {}
        try:
            for uri in uris:
                if await self._follow(uri):
                    begun.append(uri)
            if named is not None:
                agreed[named] = begun
            understood = type(wanted)(**agreed)
            index |= {filter.member: filter.index(understood) for _, filter in filtered(self._home.methods)}
            self._open.append(index)
            yield understood
        finally:
            self._open = [one for one in self._open if one is not index]
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                for uri in begun:
                    await self._leave(uri)

    async def resume(self) -> None:
        """Say again what the server has forgotten with the session: the level, and the resources that are followed."""
        level, self._level = self._level, None
        if level is not None:
            await self._say_level(level, self._carrier.link.request)
        for uri, *_ in list(self._uris.values()):
            await self._tell(SUBSCRIBE, uri, self._carrier.link.request)

    async def _say_level(self, level: str, ask: Ask) -> None:
        """Tell the server the level of log messages; one that does not take it is not told again."""
        method = self._carrier.dispatcher.revision.request(SET_LEVEL)
        self._level = level
        try:
            await ask(method, jsonrpc.typed_params(method, {"level": level}))
        except ProtocolError as error:
            log.info("the server does not take the level of log messages: %s", error)
        except BaseException:
            self._level = None
            raise

    async def _follow(self, uri: str) -> bool:
        """Subscribe to a resource, unless that is done; return whether the server agrees."""
        key = followed_key(uri)
        async with self._changing:
            if key not in self._uris and not await self._tell(SUBSCRIBE, uri, self._carrier.call):
                return False
            self._uris.setdefault(key, []).append(uri)
            return True

    async def _leave(self, uri: str) -> None:
        """Unsubscribe from a resource, if nobody else follows it."""
        key = followed_key(uri)
        async with self._changing:
            first = self._uris[key].pop()  # as it was asked for first, where this is the last one
            if not self._uris[key]:
                del self._uris[key]
                if not self._carrier.link.closed.is_set():
                    with suppress(ConnectionClosed, RequestTimeout):
                        await self._tell(UNSUBSCRIBE, first, self._carrier.call)

    async def _tell(self, name: str, uri: str, ask: Ask) -> bool:
        method = self._carrier.dispatcher.revision.request(name)
        try:
            await ask(method, jsonrpc.typed_params(method, {"uri": uri}))
        except ProtocolError as error:
            log.info("%s %s: %s", name, uri, error)
            return False
        return True


def crossing(home: Revision, carrier: Any, tasks: TaskGroup) -> Crossing:
    """Return what is between a client's era and that of the connection.

    Args:
        home: The client's revision.
        carrier: The client of the wire's revision that speaks for it.
        tasks: Where subscriptions run, for as long as the connection lasts.
    """
    wire: Revision = carrier.dispatcher.revision
    if home.era.is_stateless == wire.era.is_stateless:
        return Crossing(home, carrier)
    return StatelessClient(home, carrier) if home.era.is_stateless else StatefulClient(home, carrier, tasks)


def _filter(revision: Revision) -> Any:
    """Return the class of filters."""
    return revision.request(LISTEN).params.model_fields["notifications"].annotation
