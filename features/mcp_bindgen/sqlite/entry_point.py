"""Entry point of event stores in SQLite files. Loads the rest when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_bindgen.http.server.event_store import EventStore


class SqliteFiles:
    """SQLite files, by path."""

    schemes: tuple[str, ...] = ("file",)

    def open(self, where: str) -> EventStore:
        """Return the store in the file at a path; raises `ValueError` if the file cannot be opened."""
        if where.lower().startswith("file://"):  # the rest may be a password
            raise ValueError("the store is a file:// URL; write the path of the file")
        import sqlite3

        from .event_store import SqliteEventStore

        try:
            return SqliteEventStore(where)
        except (OSError, sqlite3.Error) as error:
            raise ValueError(f"{where}: {error}") from None


FILES = SqliteFiles()
