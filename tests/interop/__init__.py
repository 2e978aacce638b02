"""Interoperability tests: conversations with other implementations of MCP, and a report of the working features."""
