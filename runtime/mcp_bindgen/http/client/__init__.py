"""The client's side of HTTP: Streamable HTTP (`transport`), and the older HTTP with SSE (`legacy_sse`)."""
