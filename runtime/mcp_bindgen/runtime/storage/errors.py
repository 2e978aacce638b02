"""Define what may go wrong with a store."""

from __future__ import annotations


class StoreUnavailable(Exception):
    """A store cannot be asked at the moment; it has logged why."""


class StoreFull(StoreUnavailable):
    """A principal holds as much in a store as it may; the message says of what."""
