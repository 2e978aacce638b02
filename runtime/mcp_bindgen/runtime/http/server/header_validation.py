"""The tools that want arguments repeated in headers, so that their server can compare the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import jsonrpc
from ...core.errors import HeaderMismatch, MethodNotFound
from ...core.revision import LIST_TOOLS, Vocabulary
from ...endpoint.caller import Link
from ...endpoint.server import Service
from ...eras.stateless.request_meta import LOG_LEVEL
from ..headers import ANNOTATION, PREFIX, check_params

_PARAM = PREFIX.lower().encode()
_QUIET = ("progressToken", LOG_LEVEL)  # the call is about something else


class ToolSchemas:
    """The input schemas of the tools that ask for headers.

    The server's own list says which; it is read at the first call, and again when a call does not fit what it said, or
    is of a tool that is not in it.

    Args:
        service: The servers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[str, dict[str, Any]] = {}
        self._without: set[str] = set()  # revisions without a list of tools

    async def check(self, words: Vocabulary, link: Link, params: Any, headers: Mapping[bytes, bytes]) -> None:
        """Compares the headers of a tool call with its arguments.

        Args:
            words: The revision of the call.
            link: The way to its client.
            params: Its params.
            headers: Its HTTP headers, names in lower case.

        Raises:
            HeaderMismatch: They do not say the same.
        """
        if words.revision in self._without:
            return
        known = self._known.get(words.revision, {})
        if params.name in known and _fits(known[params.name], params, headers):
            return
        known = self._known[words.revision] = await self._read(words, link, params.meta)
        schema = known.get(params.name)
        if schema is not None:
            check_params(schema, params.arguments, headers)

    async def _read(self, words: Vocabulary, link: Link, meta: Any) -> dict[str, Any]:
        """Tool -> its input schema, if it asks for headers, else `None`."""
        route = words.routes[LIST_TOOLS]
        found: dict[str, Any] = {}
        try:
            handler = self._service.handler(words, route)
        except MethodNotFound:
            self._without.add(words.revision)
            return found
        said = {key: value for key, value in jsonrpc.plain(meta).items() if key not in _QUIET}
        wire: dict[str, Any] = {"_meta": said}
        while True:
            text: bytes = await handler(link, None, jsonrpc.typed_params(route.method, wire))
            page = jsonrpc.parse(text)
            asks = ANNOTATION.encode() in text
            found |= {tool["name"]: tool["inputSchema"] if asks else None for tool in page["tools"]}
            if "nextCursor" not in page or page["nextCursor"] == wire.get("cursor"):
                return found
            wire["cursor"] = page["nextCursor"]


def _fits(schema: Any, params: Any, headers: Mapping[bytes, bytes]) -> bool:
    if schema is None:
        return not any(name.startswith(_PARAM) for name in headers)
    try:
        check_params(schema, params.arguments, headers)
    except (HeaderMismatch, ValueError):
        return False
    return True
