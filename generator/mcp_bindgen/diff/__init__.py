"""Protocol model x protocol model -> findings -> reports."""

from .finding import Comparison, Finding
from .findings import compare

__all__ = ["Comparison", "Finding", "compare"]
