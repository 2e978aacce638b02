"""Check projects and typed clients against their contracts."""
