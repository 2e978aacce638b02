"""Mock servers of contracts, and strategies for their values, for tests of agents."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__, extra="generate")
