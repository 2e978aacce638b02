"""OAuth client: discovery of the authorization server, token requests, and storage of tokens."""
