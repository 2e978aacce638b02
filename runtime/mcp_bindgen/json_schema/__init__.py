"""JSON Schema of all drafts: its keywords, walks through schemas, translation of old dialects, references.

Imports `runtime`.
"""
