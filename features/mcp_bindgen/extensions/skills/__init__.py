"""Serve and load skills, as the extension `io.modelcontextprotocol/skills` says.

`Skills` takes a folder of skills for servers to offer. `load_skill` is for hosts: it verifies what they read. Needs
`mcp-bindgen[skills]`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
