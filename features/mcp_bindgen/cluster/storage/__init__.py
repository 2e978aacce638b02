"""Ask SQLite and Redis: a thread for a file, a connection that knows when its store is away.

Imports nothing of the other folders. What is stored is the matter of those who use it.
"""
