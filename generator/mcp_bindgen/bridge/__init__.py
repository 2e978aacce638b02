"""Plan what payloads of one revision become in an adjacent one, by their protocol models and the rules of `bridges.toml`."""
