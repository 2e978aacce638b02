"""The emitter of npm packages in TypeScript, as the entry point `typescript` names it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.spec import BadInput

from ..emitter import Emitter, Options

_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")


def emit(model: Model, options: Options) -> Mapping[str, str]:
    """Return the files of a package: the revision with the extensions that the model was read with."""
    from . import package  # Jinja takes time to load

    return package.emit(model, options)


class TypeScriptEmitter(Emitter):
    """Writer of npm packages."""

    templates = frozenset(path.name for path in Path(__file__).with_name("templates").glob("*.jinja"))
    made_with = ("jinja2",)

    def check_package(self, name: str) -> None:
        """Raise `BadInput` if npm has no package of this name."""
        if not _NAME.fullmatch(name) or len(name) > 214:
            raise BadInput(
                f"{json.dumps(name)} is not the name of an npm package", fix="use small letters, digits and - . _ ~"
            )

    def folder_of(self, out: Path, package: str) -> Path:
        """Return the folder of a package; the scope of `@scope/name` is a folder, as in `node_modules`."""
        return out.joinpath(*package.split("/"))

    def default_package(self, revision: str, extension: str) -> str:
        """Return `mcp-2025-11-25`, or `mcp-2026-07-28-tasks` for an extension."""
        return re.sub(r"[^a-z0-9.]+", "-", f"mcp-{revision}-{extension}".lower()).strip("-.")


EMITTER = TypeScriptEmitter(emit)
