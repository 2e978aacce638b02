"""Share sessions, their streams and broadcasts among the workers of an endpoint: in Redis."""
