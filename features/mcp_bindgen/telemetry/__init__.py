"""Traces and metrics of OpenTelemetry: `instrument()`. Imports `runtime`; needs the extra `telemetry`."""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .instrumentation import instrument as instrument
    from .instrumentation import uninstrument as uninstrument

_MODULES = {
    "instrumentation": ["instrument", "uninstrument"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
