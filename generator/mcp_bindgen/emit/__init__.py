"""Write bindings: emitters turn the protocol model into files, and the writer puts these in place."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__, extra="generate")
