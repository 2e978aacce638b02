"""JSON Schema of all drafts: its keywords, walks through schemas, translation of old dialects, pointers, references.

Imports `runtime`.
"""
