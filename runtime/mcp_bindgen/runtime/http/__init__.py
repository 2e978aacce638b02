"""Streamable HTTP, both sides of it (MCP, "Transports": Streamable HTTP)."""
