"""Read, pin, patch and normalise schema files: a file goes in, an effective schema comes out."""

from .effective import EffectiveSchema, ExtensionSchema, Origin
from .errors import BadInput
from .extension import extend, read_extension
from .extension_store import ExtensionPin, Extensions, is_extension, named
from .keywords import Schema
from .patches import Correction
from .reading import Decision, Reading
from .revisions import Pin
from .store import Store, external

__all__ = [
    "BadInput",
    "Correction",
    "Decision",
    "EffectiveSchema",
    "ExtensionPin",
    "ExtensionSchema",
    "Extensions",
    "Origin",
    "Pin",
    "Reading",
    "Schema",
    "Store",
    "extend",
    "external",
    "is_extension",
    "named",
    "read_extension",
]
