"""The protocol model, the intermediate representation of a revision: its meaning, independent of its schema file."""

from .build import build
from .model import Protocol
from .slice import slice_protocol

__all__ = ["Protocol", "build", "slice_protocol"]
