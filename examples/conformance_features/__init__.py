"""What `conformance_server.py` offers: tools, resources and prompts that know no revision.

They are plain functions that give and take JSON in the protocol's own form, which its revisions share. The class of
each revision reads that as its own types. Names and texts are those that the official conformance suite asks for.
"""
