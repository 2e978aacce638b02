"""The server: one ASGI application for stateless requests, sessions, and HTTP+SSE."""
