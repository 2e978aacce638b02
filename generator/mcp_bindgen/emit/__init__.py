"""Turn a protocol model into a package of typed Python: one emitter and one template for each emitted file."""

from .header import MARK
from .refresh import Update, update
from .requested import targets
from .target import Bridges, Target, bridges_of
from .writer import drift, write

__all__ = ["MARK", "Bridges", "Target", "Update", "bridges_of", "drift", "targets", "update", "write"]
