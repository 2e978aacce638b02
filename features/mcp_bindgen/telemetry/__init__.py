"""Traces and metrics of OpenTelemetry: `instrument()`. Imports `runtime`; needs the extra `telemetry`."""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
