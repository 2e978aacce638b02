"""The protocol model: what a revision says, independent of how its schema file happens to say it."""

from .build import build
from .model import Protocol
from .slice import slice_protocol

__all__ = ["Protocol", "build", "slice_protocol"]
