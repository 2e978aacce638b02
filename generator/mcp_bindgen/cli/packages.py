"""Options of the commands about packages of bindings."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.emit import DEFAULT, Request, Target, wanted

from . import options
from .output import say_copies, say_corrections


@dataclass(frozen=True)
class Packages:
    """Packages of bindings: schemas, their place, and their language."""

    revisions: options.Revisions = None
    out: options.Out = None
    package: options.Package = None
    schema: options.SchemaFile = None
    revision: options.Revision = None
    extension: options.Extension = None
    semantics: options.Semantics = None
    only: options.Only = None
    language: options.Language = DEFAULT
    templates: options.Templates = None
    folder: options.Folder = None
    strict: options.Strict = False

    def targets(self) -> list[Target]:
        """Return the packages, after a warning for each correction of a schema file."""
        request = Request(
            revisions=tuple(self.revisions or ()),
            out=self.out,
            package=self.package,
            schema=self.schema,
            name=self.revision,
            extensions=tuple(self.extension or ()),
            semantics=self.semantics,
            folder=self.folder,
            strict=self.strict,
            only=options.names(self.only),
            language=self.language,
            templates=self.templates,
        )
        targets = wanted(request)
        say_corrections(*(target.source for target in targets))
        say_copies(*(target.source for target in targets))
        return targets
