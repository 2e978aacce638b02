"""Cache results for as long as the server says that they are fresh (MCP 2026-07-28, "Caching")."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import RequestMethod
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.uris import followed_key, lineage
from mcp_bindgen.runtime.session.targets import CacheScope

Params = TypeVar("Params")
Answer = TypeVar("Answer")

_LONGEST = 365 * 24 * 3600.0  # seconds


@dataclass(frozen=True)
class _Key:
    server: Hashable
    method: str
    params: bytes
    connection: Hashable | None  # of a private result


@dataclass(frozen=True)
class _Entry:
    result: BaseModel
    until: float
    resource: str | None  # the key of its URI


class ResultCache:
    """Cache of results; clients that share a cache share public results.

    Args:
        limit: Number of results; beyond it the least recently used result is dropped.
        clock: Gives the time in seconds; it never goes back.
    """

    def __init__(self, limit: int = 1000, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def through(
        self,
        scope: CacheScope,
        method: RequestMethod[Params, Any, Answer],
        params: Params,
        ask: Callable[[], Awaitable[Answer]],
        *,
        fresh: bool = False,
    ) -> Answer:
        """Return a copy of the cached answer to a request, or else the server's answer, which is cached if it may be.

        Args:
            scope: Scope of the caller.
            method: The method.
            params: Its params; their `_meta` makes no difference.
            ask: Asks the server.
            fresh: Ask it in any case.
        """
        private, public = self._keys(scope, method, params)
        if not fresh:
            for key in (private, public):
                found = self._find(key)
                if found is not None:
                    kept: Answer = found
                    return kept
        changes = self._changes
        try:
            answer = await ask()
        except ProtocolError:
            if getattr(params, "cursor", None) is not None:  # the list may have changed under it
                self._drop(lambda key, entry: (key.server, key.method) == (scope.server, method.name))
            raise
        for key in (private, public):
            self._entries.pop(key, None)
        if changes == self._changes:  # else it may be older than the news
            self._keep(private if getattr(answer, "cache_scope", None) != "public" else public, params, answer)
        return answer

    def invalidate(self, server: Hashable, revision: Revision, notification: str, params: object = None) -> None:
        """Forget the results that a notification of a server invalidates; of a resource, only results about it."""
        methods = revision.cache_invalidations.get(notification, ())
        if methods:
            uri = getattr(params, "uri", None)
            changed = frozenset[str]() if uri is None else lineage(uri)

            def is_stale(key: _Key, entry: _Entry) -> bool:
                is_listed = key.server == server and key.method in methods
                return is_listed and (uri is None or entry.resource is None or entry.resource in changed)

            self._drop(is_stale)

    def forget(self, scope: CacheScope, *, public: bool = False) -> None:
        """Forget the private results of a connection, and on request all results of its server."""
        self._drop(lambda key, entry: key.connection == scope.connection or (public and key.server == scope.server))

    def _find(self, key: _Key) -> Any:
        """Return a copy of the result, or `None`."""
        entry = self._entries.get(key)
        if entry is None or entry.until <= self._clock():
            self._entries.pop(key, None)
            return None
        self._entries.move_to_end(key)
        return entry.result.model_copy(deep=True)

    def _keep(self, key: _Key, params: Any, answer: Any) -> None:
        seconds = min(getattr(answer, "ttl_ms", 0) / 1000, _LONGEST) if _is_complete(params, answer) else 0
        if seconds > 0:
            uri = getattr(params, "uri", None)
            resource = None if uri is None else followed_key(uri)
            self._entries[key] = _Entry(answer.model_copy(deep=True), self._clock() + seconds, resource)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)

    def _drop(self, which: Callable[[_Key, _Entry], bool]) -> None:
        self._changes += 1
        for key in [key for key, entry in self._entries.items() if which(key, entry)]:
            del self._entries[key]

    def _keys(self, scope: CacheScope, method: RequestMethod[Any, Any, Any], params: object) -> tuple[_Key, _Key]:
        wire: dict[str, Any] = jsonrpc.plain(params) if params is not None else {}
        text = to_json({name: wire[name] for name in sorted(wire) if name != "_meta"})
        return _Key(scope.server, method.name, text, scope.connection), _Key(scope.server, method.name, text, None)


def _is_complete(params: object, answer: object) -> bool:
    """Return whether a result depends on nothing but the params that are part of its key."""
    if getattr(params, "input_responses", None) is not None or getattr(params, "request_state", None) is not None:
        return False
    return isinstance(answer, BaseModel) and getattr(answer, "result_type", None) == "complete"
