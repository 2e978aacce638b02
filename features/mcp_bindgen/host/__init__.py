"""Connections to many servers at once: configuration files, logins, routing of calls, cache of results.

Imports `app`, `auth`, `drift`, `http`, `lock`, `lowering` and `runtime`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
