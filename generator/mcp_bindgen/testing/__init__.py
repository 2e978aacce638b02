"""Tests of servers and clients: connections in memory that check each message, and servers over HTTP."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
