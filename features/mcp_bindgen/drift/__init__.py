"""Drift of servers: what a change of tools, prompts and resources means to their callers.

Imports `app`, `json_schema` and `runtime`; needs the extra `app`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
