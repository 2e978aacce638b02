"""Resource server: verification of access tokens, scopes of operations, and challenges for clients."""
