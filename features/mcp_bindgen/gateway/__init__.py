"""Gateways: a server of one revision as a server of all revisions, over any transport.

Imports `app`, `bridging`, `extension_abi`, `host` and `runtime`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
