"""Read, pin, patch and normalise schema files: a file goes in, an effective schema comes out."""

from .diagnostics import Diagnostic, DiagnosticContext
from .effective import EffectiveSchema, Era, ExtensionSchema, Origin
from .errors import BadInput
from .extension import extend, read_extension
from .keywords import Schema
from .patches import Correction
from .pins import Pin
from .store import Store, external, named

__all__ = [
    "BadInput",
    "Correction",
    "Diagnostic",
    "DiagnosticContext",
    "EffectiveSchema",
    "Era",
    "ExtensionSchema",
    "Origin",
    "Pin",
    "Schema",
    "Store",
    "extend",
    "external",
    "named",
    "read_extension",
]
