"""Streamable HTTP and HTTP+SSE, for servers and clients (MCP, "Transports").

Imports `json_schema` and `runtime`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
