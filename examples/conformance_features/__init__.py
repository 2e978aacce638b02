"""What `conformance_server.py` offers: tools, resources and prompts that know no revision.

They are plain functions that give and take JSON in the protocol's own form; the server's class reads that as the types
of its revision. Names and texts are those that the official conformance suite asks for.
"""
