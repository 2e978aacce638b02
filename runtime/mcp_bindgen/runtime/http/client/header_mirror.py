"""What a client repeats of its stateless requests in HTTP headers.

MCP 2026-07-28, "Streamable HTTP": Request Metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ...core import jsonrpc
from ...core.methods import Method
from ...core.revision import CALL_TOOL
from ..headers import encode, header_params, param_headers

log = logging.getLogger("mcp_bindgen")


class Mirror:
    """Makes headers from messages, and remembers which arguments the tools want to see there.

    Args:
        revision: The revision that is spoken.
    """

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._schemas: dict[str, Any] = {}

    def headers(self, method: Method, params: Any) -> Mapping[str, str]:
        """The headers of a message.

        Raises:
            ValueError: An argument that a tool wants to see there cannot stand in a header.
        """
        found = {"MCP-Protocol-Version": self._revision, "Mcp-Method": method.name}
        named_by = method.named_by if method.kind == "request" else None
        if named_by is not None:
            found["Mcp-Name"] = encode(getattr(params, named_by))
        if method.name == CALL_TOOL and params.name in self._schemas:
            found |= param_headers(self._schemas[params.name], params.arguments)
        return found

    def learn(self, page: Any) -> Any:
        """Remembers the tools in a page of them, and leaves out those whose wishes are not allowed."""
        fine: list[Any] = []
        for tool in page.tools:
            schema = jsonrpc.plain(tool.input_schema)
            try:
                wanted = header_params(schema)
            except ValueError as error:
                log.warning("the tool %r is left out: %s", tool.name, error)
                self._schemas.pop(tool.name, None)
                continue
            if wanted:
                self._schemas[tool.name] = schema
            else:
                self._schemas.pop(tool.name, None)
            fine.append(tool)
        return page if len(fine) == len(page.tools) else page.model_copy(update={"tools": fine})
