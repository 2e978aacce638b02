"""Lock files: the reviewed contract of each server, and the comparison of live servers with it.

Imports `app`, `drift`, `json_schema` and `runtime`; needs the extra `app`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
