"""Plan the conversion of payloads between adjacent revisions, from the protocol models and `bridges.toml`."""
