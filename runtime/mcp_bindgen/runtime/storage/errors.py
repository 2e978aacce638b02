"""Define what may go wrong with a store."""

from __future__ import annotations


class StoreUnavailable(Exception):
    """A store cannot be asked at the moment; it has logged why."""
