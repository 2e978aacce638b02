"""The emitter of Go packages, as the entry point `go` names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.spec import BadInput

from ..emitter import Emitter, Options, Settings

_TEMPLATES = Path(__file__).with_name("templates")
_KEYWORD = re.compile(
    "break|case|chan|const|continue|default|defer|else|fallthrough|for|func|go|goto|if|import|interface|map|package"
    "|range|return|select|struct|switch|type|var"
)


class GoSettings(Settings):
    """Settings of a Go package.

    Attributes:
        import_path: Import path of the package as a module of its own, in `go.mod`; empty inside of another module.
    """

    import_path: str = ""


def emit(model: Model, options: Options) -> Mapping[str, str]:
    """Return the files of a package: the revision with the extensions that the model was read with."""
    from ..templates import environment, render  # Jinja takes time to load
    from . import lowering

    settings = options.settings_as(GoSettings)
    values = {
        **vars(lowering.lower(model.protocol)),
        "comment": lowering.comment,
        "text": lowering.quoted,
        "lines": lowering.lines,
        "package": options.package.rpartition("/")[2],
        "import_path": settings.import_path,
    }
    files, templates = dict[str, str](), environment(_TEMPLATES, options.templates)
    for name in sorted(path.removesuffix(".jinja") for path in GoEmitter.templates):
        if name == "go.mod" and not settings.import_path:
            continue
        values["header"] = options.header(model, comment="//", with_digest=name == "types.go")
        files[name] = render(templates, f"{name}.jinja", options.templates, "docs/how-to/go.md", **values)
    return files


class GoEmitter(Emitter):
    """Writer of Go packages."""

    templates = frozenset(path.name for path in _TEMPLATES.glob("*.jinja"))
    made_with = ("jinja2",)
    settings = GoSettings
    formats = "*.go"

    def check_package(self, name: str) -> None:
        """Raise `BadInput` if Go has no package of this path and name."""
        if not re.fullmatch(r"([a-z0-9][a-z0-9._-]*/)*[a-z][a-z0-9_]*", name) or _KEYWORD.fullmatch(
            name.rpartition("/")[2]
        ):
            raise BadInput(f"{name!r} is not the name of a Go package", fix="use small letters, digits and _")

    def folder_of(self, out: Path, package: str) -> Path:
        """Return the folder of a package, e.g. of `internal/mcp`."""
        return out.joinpath(*package.split("/"))

    def package_of(self, revision: str) -> str:
        """Return `v20251125` for `2025-11-25`."""
        return "v" + re.sub(r"[^a-z0-9]+", "", revision.lower())

    def default_package(self, revision: str, extension: str) -> str:
        """Return `mcp20251125`, or `mcp20260728tasks` for an extension."""
        return "mcp" + re.sub(r"[^a-z0-9]+", "", f"{revision}{extension}".lower())


EMITTER = GoEmitter(emit)
