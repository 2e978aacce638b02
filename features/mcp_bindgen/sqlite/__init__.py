"""Stores in SQLite files: events of HTTP sessions, and the file layer of other stores.

Imports `http` and `runtime`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
