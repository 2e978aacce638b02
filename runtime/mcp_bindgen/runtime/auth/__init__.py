"""Authorization for HTTP (MCP, "Authorization"; OAuth 2.1): what both sides share here, `client/` asks for tokens.

Needs the extra `auth`, and is imported only where it is used. Imports `core` only.
"""
