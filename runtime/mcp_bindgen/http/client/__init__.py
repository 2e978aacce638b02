"""The client: Streamable HTTP (`transport`) and HTTP+SSE (`legacy_sse`)."""
