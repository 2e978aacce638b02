"""Protocol model x protocol model -> findings -> reports."""

from .engine import compare
from .finding import Comparison, Finding

__all__ = ["Comparison", "Finding", "compare"]
