"""Tests of servers, clients and agents: checked connections, mock servers, and values of contracts."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
