"""The emitter of Go: packages with types that validate themselves, methods and error codes."""
