"""The official conformance suite, run on the servers and clients in `examples/`."""
