from .event_store import SqliteEventStore as SqliteEventStore
