"""Servers that answer with sample values of a contract."""

from .answers import Answer, read_answers
from .server import Mock

__all__ = ["Answer", "Mock", "read_answers"]
