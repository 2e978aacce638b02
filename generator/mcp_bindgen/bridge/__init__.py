"""Plan what payloads of one revision become in the next one, by the protocol models and the rules of `bridges.toml`."""
