"""Conversion between revisions: servers and clients of one revision speak another. Imports `runtime`.

The kernel finds `entry` by the entry point group `mcp_bindgen.bridging`; generated steps import `abi`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .chain import Chain as Chain
    from .chain import missed as missed
    from .step import NotConvertible as NotConvertible

__getattr__ = lazy_modules(__name__, {"chain": ["Chain", "missed"], "step": ["NotConvertible"]})
