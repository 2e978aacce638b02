"""Python-first servers (`App`), servers and clients of contracts, and JSON Schema validation.

Imports `auth`, `extension_abi`, `extensions`, `http`, `json_schema` and `runtime`; needs the extra `app`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
