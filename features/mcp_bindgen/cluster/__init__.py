"""Sessions, events and broadcasts that several workers share in Redis.

Imports `http` and `runtime`. It needs the extra `cluster`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
