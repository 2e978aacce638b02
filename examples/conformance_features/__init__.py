"""Features of `conformance_server.py`: tools, resources and prompts that know no revision.

They are plain functions that give and take JSON in the protocol's own form; the server's class reads that as the types
of its revision. The official conformance suite prescribes names and texts.
"""
