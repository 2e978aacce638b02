"""Log records of HTTP requests in the logger `mcp_bindgen.requests`, with fields and without secrets.

Records are made only if that logger is enabled. A record never holds tokens, cookies, session ids, query strings,
arguments or URIs of resources.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Any

from starlette.types import Message, Scope, Send

from mcp_bindgen.runtime.log_format import request_fields
from mcp_bindgen.runtime.logs import requests
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.envelope import read_envelopes
from mcp_bindgen.runtime.protocol.errors import ProtocolError

from .access import operations_named

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TRACE_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_PATH = re.compile(r"[A-Za-z0-9/._~-]{1,200}")
_NAME = re.compile(r"[A-Za-z0-9/._-]{1,128}")
"""Names of methods, tools and prompts. A URI does not match: it has a colon."""
_MAX_REMOTE, _MAX_METHOD = 100, 20  # characters; proxies may forward any text as an address
_BATCH = re.compile(rb"\s*\[")
_MAX_BATCH = 64 * 1024  # bytes
_MAX_NAMES = 10  # methods and tools of one batch in a record


class RequestRecord:
    """Log fields of one request, in the context variable of formatters until the response has ended.

    Args:
        scope: The ASGI scope of the request.
        send: Takes the response; `send` of this object replaces it.
        principal: The sender, if known before tokens are verified.
    """

    def __init__(self, scope: Scope, send: Send, principal: str | None) -> None:
        self._send = send
        self._status: int | None = None
        self._begin = time.perf_counter()
        headers: dict[bytes, str] = {}
        for name, value in scope["headers"]:  # repeated headers are ignored
            headers[name] = "" if name in headers else value.decode("latin-1")
        given = headers.get(b"x-request-id", "")
        self.id: str = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
        client = scope.get("client")
        self.fields: dict[str, Any] = {
            "request_id": self.id,
            "remote": str(client[0])[:_MAX_REMOTE] if client else None,
            "http_method": scope["method"][:_MAX_METHOD],
            "principal": principal,
        }
        if _PATH.fullmatch(scope["path"]):  # not with the characters of an escaped query
            self.fields["path"] = scope["path"]
        self._note_trace(headers.get(b"traceparent"))

    def read(self, body: bytes) -> None:
        """Note the methods, the names of tools and prompts, and the trace of the messages in a body.

        Large batches are left out: to parse them a second time would block the event loop.
        """
        if len(body) > _MAX_BATCH and _BATCH.match(body):
            return
        with suppress(ProtocolError):
            envelopes, _ = read_envelopes(body)
            asked = [op for one in envelopes if not one.is_answer for op in operations_named(one.method, one.params)]
            self._note("method", (method for method, _ in asked))
            self._note("tool", (name for _, name in asked if name is not None))
            for envelope in envelopes:
                meta = envelope.params.get("_meta") if is_object(envelope.params) else None
                self._note_trace(meta.get("traceparent") if is_object(meta) else None)

    def _note(self, field: str, names: Iterable[str]) -> None:
        found = [name for name in dict.fromkeys(names) if _NAME.fullmatch(name)][:_MAX_NAMES]
        if found:
            self.fields[field] = ",".join(found)

    def _note_trace(self, parent: object) -> None:
        found = _TRACE_PARENT.fullmatch(parent) if isinstance(parent, str) else None
        if found is not None:
            self.fields.setdefault("trace_id", found[1])

    async def send(self, message: Message) -> None:
        """Send a part of the response, with the id of the request in a header."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"x-request-id", self.id.encode())]}
        await self._send(message)

    async def during(self, response: Awaitable[None]) -> None:
        """Await the response, and write the record at its end."""
        token = request_fields.set(self.fields)
        try:
            await response
        except Exception:
            self._status = self._status or 500
            raise
        finally:
            duration = round((time.perf_counter() - self._begin) * 1000, 3)
            fields = {**self.fields, "status": self._status, "duration_ms": duration}
            requests.info("%s %s", fields["http_method"], self._status, extra={"fields": fields})
            request_fields.reset(token)
