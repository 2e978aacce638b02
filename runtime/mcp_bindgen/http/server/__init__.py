"""The server's side: one ASGI application, stateless exchanges, stateful sessions."""
