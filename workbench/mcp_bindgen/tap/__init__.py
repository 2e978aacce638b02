"""Tap between a client and a server: forwards bytes unmodified, and holds each message against its schema."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__, extra="http")
