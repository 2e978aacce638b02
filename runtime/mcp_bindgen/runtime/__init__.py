"""Kernel of the runtime: the names that servers and clients of generated bindings use."""

from .lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
