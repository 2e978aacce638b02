"""The protocol model: the meaning of a revision, independent of the form of its schema file."""

from .build import build
from .model import Protocol
from .slice import slice_protocol

__all__ = ["Protocol", "build", "slice_protocol"]
