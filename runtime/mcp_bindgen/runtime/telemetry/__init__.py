"""Traces and metrics by OpenTelemetry, the extra `telemetry`: `instrument()`. Imports `eras` and `core`."""

from typing import TYPE_CHECKING

from ..core.lazy import lazy_modules

if TYPE_CHECKING:
    from .instrumentation import instrument as instrument, uninstrument as uninstrument

_MODULES = {"instrumentation": ["instrument", "uninstrument"]}

__getattr__ = lazy_modules(__name__, _MODULES)
