"""Write bindings: emitters turn the protocol model into files, and the writer puts these in place."""

from mcp_bindgen.conversion.document import Model

from .emitter import BRIDGES, Bindings, Emitter, Options, Settings, Target
from .header import MARK
from .project import wanted
from .refresh import Update, update
from .registry import DEFAULT, emitter, languages
from .requested import Request, targets
from .writer import drift, write

__all__ = [
    "BRIDGES",
    "DEFAULT",
    "MARK",
    "Bindings",
    "Emitter",
    "Model",
    "Options",
    "Request",
    "Settings",
    "Target",
    "Update",
    "drift",
    "emitter",
    "languages",
    "targets",
    "update",
    "wanted",
    "write",
]
