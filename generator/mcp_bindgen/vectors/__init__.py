"""Conformance vectors: MCP documents with verdicts, for implementations in any language."""

from .format import FORMAT, SUITE, Vector, VectorFile, json_schema, read_files
from .suite import files_of, vector_files

__all__ = ["FORMAT", "SUITE", "Vector", "VectorFile", "files_of", "json_schema", "read_files", "vector_files"]
