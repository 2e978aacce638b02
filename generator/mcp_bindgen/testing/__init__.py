"""Test servers and clients: both in one process, with every message of the server's checked."""

from .checked import Watched, connected

__all__ = ["Watched", "connected"]
