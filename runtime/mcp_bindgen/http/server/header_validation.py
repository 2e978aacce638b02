"""Hold the headers that repeat arguments against the arguments themselves (MCP 2026-07-28, "Request Metadata")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.methods import HeaderParams
from mcp_bindgen.runtime.protocol.request_scope import Link, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher
from mcp_bindgen.runtime.session.server import Service

from ..headers import ANNOTATION, PREFIX, HeaderMismatch, check_params

_PARAM = PREFIX.lower().encode()


class ArgumentSchemas:
    """The JSON Schemas of what is called with arguments that headers repeat, such as tools.

    The server's own list says which; it is read at the first call, and again when a call does not fit what it said, or
    is of an entry that is not in it.

    Args:
        service: The servers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[HeaderParams, dict[str, Any]] = {}
        self._unlisted: set[HeaderParams] = set()

    def is_met(self, rule: HeaderParams, params: Any, headers: Mapping[bytes, bytes]) -> bool:
        """Tell whether the headers of a call are known to fit its arguments; if not, `check` has to find out."""
        if rule in self._unlisted:
            return True
        known, name = self._known.get(rule, {}), getattr(params, rule.name)
        return name in known and _fits(known[name], getattr(params, rule.arguments), headers)

    async def check(
        self, rule: HeaderParams, dispatcher: Dispatcher, link: Link, params: Any, headers: Mapping[bytes, bytes]
    ) -> None:
        """Read anew which headers are wanted, and compare those of a call with its arguments.

        Args:
            rule: Where its arguments and their schema are.
            dispatcher: The revision of the call.
            link: The way to its client.
            params: Its params.
            headers: Its HTTP headers, names in lower case.

        Raises:
            HeaderMismatch: They do not say the same.
        """
        name, arguments = getattr(params, rule.name), getattr(params, rule.arguments)
        known = self._known[rule] = await self._read(rule, dispatcher, link, params.meta)
        schema = known.get(name)
        if schema is not None:
            check_params(schema, arguments, headers)

    async def _read(self, rule: HeaderParams, dispatcher: Dispatcher, link: Link, meta: Any) -> dict[str, Any]:
        """Return name -> JSON Schema, if it asks for headers, else `None`."""
        route = dispatcher.routes[rule.listed_by]
        found: dict[str, Any] = {}
        if not self._service.is_handled(dispatcher, route):
            self._unlisted.add(rule)
            return found
        handler = self._service.handler(dispatcher, route)
        about_the_call = ("progressToken", dispatcher.revision.meta_keys.get("log_level"))
        said = {key: value for key, value in jsonrpc.plain(meta).items() if key not in about_the_call}
        wire: dict[str, Any] = {"_meta": said}
        while True:
            text: bytes = await handler(RequestScope.of(link), jsonrpc.typed_params(route.method, wire))
            page = parse(text)
            asks = ANNOTATION.encode() in text
            items, name, schema = map(wire_name, (rule.items, rule.name, rule.schema))
            found |= {item[name]: item[schema] if asks else None for item in page[items]}
            if "nextCursor" not in page or page["nextCursor"] == wire.get("cursor"):
                return found
            wire["cursor"] = page["nextCursor"]


def _fits(schema: Any, arguments: Any, headers: Mapping[bytes, bytes]) -> bool:
    if schema is None:
        return _PARAM not in b"\n".join(headers)  # also false if it is inside of a name; `check` looks closer
    try:
        check_params(schema, arguments, headers)
    except (HeaderMismatch, ValueError):
        return False
    return True
