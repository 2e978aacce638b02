"""Gateways: a server of one revision as a server of all revisions, over any transport.

Imports `app`, `bridging`, `extensions`, `host` and `runtime`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
