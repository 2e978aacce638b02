"""Test servers and clients in one process, with every message of the server checked."""

from .checked import Watched, connected

__all__ = ["Watched", "connected"]
