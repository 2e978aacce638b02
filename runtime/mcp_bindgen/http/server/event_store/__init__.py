"""Keep what clients may have missed: in memory, or in SQLite."""
