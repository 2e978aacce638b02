"""Turn a protocol model into a package of typed Python: one emitter and one template for each emitted file."""

from .bindings import emit
from .header import MARK
from .target import Target, targets
from .trial import try_import
from .writer import drift, write

__all__ = ["MARK", "Target", "drift", "emit", "targets", "try_import", "write"]
