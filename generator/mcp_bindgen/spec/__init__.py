"""Read, pin, patch and normalise schema files: a file goes in, an effective schema comes out."""

from .errors import BadInput
from .keywords import Schema
from .patches import Correction
from .reading import Decision, Reading
from .revisions import Pin
from .store import EffectiveSchema, Origin, Store, external, named

__all__ = [
    "BadInput",
    "Correction",
    "Decision",
    "EffectiveSchema",
    "Origin",
    "Pin",
    "Reading",
    "Schema",
    "Store",
    "external",
    "named",
]
