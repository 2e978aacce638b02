"""Headers that repeat parts of stateless requests, as intermediaries may read the headers alone.

MCP 2026-07-28, "Streamable HTTP": Request Metadata, Custom Headers from Tool Parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import monotonic
from typing import Any

from mcp_bindgen.runtime.concurrency import resolved
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import HeaderParams, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Handler, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.context import Caller
from mcp_bindgen.runtime.session.endpoint import Endpoint

from ..headers import ANNOTATION, PREFIX, HeaderMismatch, check_params, decode
from .call import VERSION, PublicHeaders, header_text

_VAIN_SECONDS = 1.0  # for which a list is not read again after it was read in vain
_PLAIN = re.compile(rb"(?!=\?)[!-~]+")
_PARAM = PREFIX.lower().encode()


def mirrored(endpoint: Endpoint, dispatcher: Dispatcher, route: Route, handler: Handler) -> Handler:
    """Check that the headers of a request agree with its body before it is handled."""
    revision, method = dispatcher.revision, route.method
    if not revision.era.is_stateless or not isinstance(method, RequestMethod):
        return handler
    schemas = None if method.header_params is None else _ArgumentSchemas(endpoint, dispatcher, method.header_params)

    async def checked_again(scope: RequestScope, params: Any, headers: Mapping[bytes, bytes]) -> Any:
        assert schemas is not None
        try:
            await schemas.check(scope, params, headers)
        except HeaderMismatch as error:
            raise mismatch(revision, str(error)) from None
        return await resolved(handler(scope, params))

    def checked(scope: RequestScope, params: Any) -> Any:
        headers = scope.origin.headers
        if not isinstance(headers, PublicHeaders):  # the runtime's own request, such as that of a task
            return handler(scope, params)
        try:
            _check(headers.raw, revision, method, params)
        except HeaderMismatch as error:
            raise mismatch(revision, str(error)) from None
        if schemas is None or schemas.is_met(params, headers.raw):
            return handler(scope, params)
        return checked_again(scope, params, headers.raw)

    return checked


def _check(headers: Mapping[bytes, bytes], revision: Revision, method: RequestMethod[Any, Any], params: object) -> None:
    """Check the headers with the revision, the method and its target; raises `HeaderMismatch`."""
    for header, wanted in ((VERSION, revision.name), (b"mcp-method", method.name)):
        if headers.get(header) != wanted.encode() and (found := header_text(headers, header)) != wanted:
            shown = header.decode().title()
            raise HeaderMismatch(f"{shown} is missing" if found is None else f"{shown} differs from the body")
    if method.named_by is not None:
        name, sent = getattr(params, method.named_by), headers.get(b"mcp-name")
        if sent is None:
            raise HeaderMismatch("Mcp-Name is missing")
        if not (sent == name.encode() and _PLAIN.fullmatch(sent)) and decode(sent.decode("latin-1")) != name:
            raise HeaderMismatch("Mcp-Name differs from the body")


class _ArgumentSchemas:
    """JSON Schemas of tools that repeat arguments in headers, for calls of one revision.

    The server's own list has the schemas. It is read at the first call, and again when a call does not match it or
    names a tool that is not in it. If that was in vain, because the list is the same or lacks the tool, it is not read
    again for a second, except for a client that may get another list, or after a broadcast.

    Args:
        endpoint: The endpoint.
        dispatcher: The revision.
        rule: The fields with the arguments and their schema.
    """

    def __init__(self, endpoint: Endpoint, dispatcher: Dispatcher, rule: HeaderParams) -> None:
        self._endpoint, self._dispatcher, self._rule = endpoint, dispatcher, rule
        self._route = dispatcher.routes[rule.listed_by]
        self._is_listed = endpoint.is_handled(dispatcher, self._route)
        self._known: dict[str, Any] | None = None
        self._read_in_vain: tuple[object, ...] = ()  # the facts that decided about the list
        self._read_at = 0.0

    def is_met(self, params: object, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if the headers of a call are known to match its arguments; if not, `check` reads the list."""
        if not self._is_listed:
            return True
        known, name = self._known or {}, getattr(params, self._rule.name)
        if name not in known:
            return False
        if known[name] is None:
            return _PARAM not in b"\n".join(headers)  # also false inside of a name
        try:
            check_params(known[name], getattr(params, self._rule.arguments), headers)
        except (HeaderMismatch, ValueError):
            return False
        return True

    async def check(self, scope: RequestScope, params: Any, headers: Mapping[bytes, bytes]) -> None:
        """Read the list again if it may differ, and check a call; raises `HeaderMismatch`."""
        meta, name = self._of_the_client(scope.meta or params.meta), getattr(params, self._rule.name)
        view = self._endpoint.clients.broadcasts, scope.origin.principal, meta
        if self._read_in_vain != view or monotonic() > self._read_at + _VAIN_SECONDS:
            before, known = self._known, await self._listed(scope, meta)
            self._read_in_vain, self._read_at = view if known == before or name not in known else (), monotonic()
            self._known = known
        schema = (self._known or {}).get(name)
        if schema is not None:
            check_params(schema, getattr(params, self._rule.arguments), headers)

    async def _listed(self, scope: RequestScope, meta: dict[str, Any]) -> dict[str, Any]:
        """Return name -> JSON Schema, None for a schema that asks for no headers."""
        handler = self._endpoint.unchecked_handler(self._dispatcher, self._route)
        found: dict[str, Any] = {}
        items, name, schema = map(wire_name, (self._rule.items, self._rule.name, self._rule.schema))
        asked: list[dict[str, Any]] = []

        async def page(cursor: str | None) -> dict[str, Any]:
            asked.append({"_meta": meta} if cursor is None else {"_meta": meta, "cursor": cursor})
            text: bytes = await handler(
                RequestScope.of(scope.link), jsonrpc.typed_params(self._route.method, asked[-1])
            )
            asked.clear()
            read: dict[str, Any] = parse(text)
            asks = ANNOTATION.encode() in text
            found.update({item[name]: item[schema] if asks else None for item in read[items]})
            return read

        try:
            async for _ in Caller(scope.link).pages(page):
                pass
        except ProtocolError as error:
            if asked:  # the handler has failed
                raise
            log.error("%s is not read to its end: %s", self._rule.listed_by, error)
        return found

    def _of_the_client(self, meta: object) -> dict[str, Any]:
        """Return the `_meta` of a request without the members that concern this request only."""
        log_level = self._dispatcher.revision.meta_keys.get("log_level")
        of_the_call = ("progressToken", "traceparent", "tracestate", log_level)
        return {key: value for key, value in jsonrpc.plain(meta).items() if key not in of_the_call}


def mismatch(revision: Revision, reason: str, data: object = None) -> ProtocolError:
    """Return the error for headers that disagree with the body."""
    return ProtocolError(revision.errors["HEADER_MISMATCH"], f"Header mismatch: {reason}", data)
