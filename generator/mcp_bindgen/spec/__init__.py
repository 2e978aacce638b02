"""Read, pins, patches and normalises schema files: a file goes in, an effective schema comes out."""

from .errors import BadInput
from .keywords import Schema
from .revisions import Pin
from .store import EffectiveSchema, Store, external

__all__ = ["BadInput", "EffectiveSchema", "Pin", "Schema", "Store", "external"]
