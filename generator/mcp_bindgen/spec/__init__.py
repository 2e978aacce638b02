"""Read, pin, patch and normalise schema files: a file goes in, an effective schema comes out."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__, extra="generate")
