"""Options of the commands that print facts of one revision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import typer

from mcp_bindgen.bridge.document import Model
from mcp_bindgen.bridge.source import model_of, protocol_of
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.spec import Store

from . import complete, options
from .output import say_reading

_revision = typer.Argument(help=options.REVISION_HELP, autocompletion=complete.revisions)
RevisionName = Annotated[str, _revision]
OptionalRevisionName = Annotated[str | None, _revision]


@dataclass(frozen=True)
class Reading:
    """A revision with extensions, and the folder of its schema."""

    extension: options.Extension = None
    folder: options.Folder = None
    strict: options.Strict = False

    @cached_property
    def store(self) -> Store:
        """The folder of schemas."""
        return Store(self.folder, strict=self.strict)

    def protocol(self, revision: str) -> PythonProtocol:
        """Return the Python view of a revision, after a warning for each correction and decision."""
        found = lower(protocol_of(revision, self.store, extensions=tuple(self.extension or ())))
        say_reading(found)
        return found

    def model(self, revision: str) -> Model:
        """Return the model of a revision, after a warning for each correction and decision."""
        found = model_of(revision, self.store, tuple(self.extension or ()))
        say_reading(found.protocol)
        return found
