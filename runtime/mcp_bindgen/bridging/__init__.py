"""Conversion between revisions: servers and clients of one revision speak another.

Imports `json_schema`, `runtime` and `user_bindings`. The kernel finds `entry` by the entry point group
`mcp_bindgen.bridging`; generated steps import `abi`.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
