"""Stores of tasks: in memory, in an SQLite file, in Redis."""
