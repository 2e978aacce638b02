"""Authorization over HTTP (MCP, "Authorization"; OAuth 2.1), for servers and clients.

Imports `http` and `runtime`; needs the extra `auth`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
