"""Repeat parts of stateless requests in HTTP headers (MCP 2026-07-28, "Streamable HTTP": Request Metadata)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ...core.jsonrpc import plain
from ...core.methods import HeaderParams, Method
from ..headers import encode, header_params, param_headers

log = logging.getLogger("mcp_bindgen")


class Mirror:
    """Make headers from messages, and remember which arguments the listed items want to see there.

    Args:
        revision: The revision that is spoken.
        methods: Its methods, by name.
    """

    def __init__(self, revision: str, methods: Mapping[str, Method]) -> None:
        self._revision = revision
        requests = [method for method in methods.values() if method.kind == "request"]
        self._listed = {
            request.header_params.listed_by: request.header_params for request in requests if request.header_params
        }
        self._schemas: dict[tuple[HeaderParams, str], Any] = {}

    def headers(self, method: Method, params: Any) -> Mapping[str, str]:
        """Make the headers of a message.

        Raises:
            ValueError: An argument that a schema wants to see there cannot stand in a header.
        """
        found = {"MCP-Protocol-Version": self._revision, "Mcp-Method": method.name}
        if method.kind == "request" and method.named_by is not None:
            name = getattr(params, method.named_by)
            found["Mcp-Name"] = encode(name)
            wanted = method.header_params
            schema = self._schemas.get((wanted, name)) if wanted is not None else None
            if wanted is not None and schema is not None:
                found |= param_headers(schema, getattr(params, wanted.arguments))
        return found

    def learn(self, method: Method, page: Any) -> Any:
        """Remember the items in a page of a list, and leave out those whose wishes are not allowed.

        Args:
            method: The method that the page answers; pages of methods that list nothing of interest stay as they are.
            page: The page.
        """
        wanted = self._listed.get(method.name)
        if wanted is None:
            return page
        items: list[Any] = getattr(page, wanted.items)
        fine: list[Any] = []
        for item in items:
            name, schema = getattr(item, wanted.name), plain(getattr(item, wanted.schema))
            self._schemas.pop((wanted, name), None)
            try:
                if header_params(schema):
                    self._schemas[wanted, name] = schema
            except ValueError as error:
                log.warning("%r of %s is left out: %s", name, method.name, error)
                continue
            fine.append(item)
        return page if len(fine) == len(items) else page.model_copy(update={wanted.items: fine})
