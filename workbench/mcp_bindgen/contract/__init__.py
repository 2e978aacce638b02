"""Contracts of servers: read from documents, functions or running servers, and compared."""
