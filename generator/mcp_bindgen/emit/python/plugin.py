"""The emitter of Python bindings, as the entry point `python` names it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Definition
from mcp_bindgen.spec import BadInput, Diagnostic, Store

from ..emitter import Emitter, Options, Settings, Target
from . import naming
from .installation import NAMESPACE, installed
from .lowering import lower
from .package_scope import engine_of
from .settings import PythonSettings


def emit(model: Model, options: Options) -> Mapping[str, str]:
    """Return the modules of a revision, an extension or the conversions of a revision."""
    from . import bindings, bridges  # datamodel-code-generator takes time to load

    return bridges.emit(model, options) if model.bridges else bindings.emit(model, options)


_TEMPLATES = Path(__file__).with_name("templates")


class PythonEmitter(Emitter):
    """Writer of typed Python packages."""

    templates = frozenset(
        path.relative_to(_TEMPLATES).as_posix()
        for pattern in ("*.jinja", "extension/*.jinja", "types_only/*.jinja")
        for path in _TEMPLATES.glob(pattern)
    )
    parts = frozenset({"types"})
    made_with = ("black", "datamodel-code-generator", "jinja2", "pydantic")
    modules = ("mcp_bindgen.runtime",)
    settings = PythonSettings
    formats = "*.py"
    record = "__pycache__/mcp-bindgen.json"

    def check_package(self, name: str) -> None:
        """Raise `BadInput` if Python cannot import a package of this name."""
        if not all(part.isidentifier() and not iskeyword(part) for part in name.split(".")):
            raise BadInput(f"{name!r} is not the name of a package", fix="use letters, digits, _ and dots, no keywords")

    def check_options(self, options: Options) -> None:
        """Raise `BadInput` if settings of types without the runtime are given for a whole package."""
        settings = options.settings_as(PythonSettings)
        own = PythonSettings.model_fields.keys() - Settings.model_fields
        for name in sorted(own & settings.model_fields_set) if not options.parts else ():
            raise BadInput(f"the setting {name!r} is for types without the runtime", fix='add only = ["types"]')
        if any(map(iskeyword, re.split("[.:]", settings.base_class))):
            raise BadInput(
                f"base_class: {settings.base_class!r} has a keyword of Python", fix="name an importable class"
            )

    def objection(self, name: str, definition: Definition, options: Options) -> str:
        """Return an objection to names that no class can have, and to definitions that the package imports."""
        if definition.origin != options.extension:
            return "the package imports this definition from that of the revision"
        return "" if naming.is_definition(name) else f"no class can be named {name!r}"

    def package_of(self, revision: str) -> str:
        """Return `v2025_11_25` for `2025-11-25`."""
        return naming.package(revision)

    def core_of(self, revision: str) -> str:
        """Return `mcp_bindgen.v2025_11_25` for `2025-11-25`."""
        return f"{NAMESPACE}.{naming.package(revision)}"

    def diagnostics(self, protocol: Protocol) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the model and of its names."""
        return lower(protocol).diagnostics

    def check_files(self, files: Mapping[str, str], model: Model, options: Options) -> None:
        """Import the files from a scratch folder; raise `BadInput` if that fails.

        Conversions are not imported, because they hold data only. Neither are extensions with an engine: that would
        run code that the schema's author chose. A base class of the user may need the package itself.
        """
        from .trial import try_import

        has_engine = any(engine_of(one) for one in model.protocol.extensions if one.id == options.extension)
        if not (model.bridges or has_engine or options.settings_as(PythonSettings).base_class):
            try_import(files, options.templates)

    def installed(self, store: Store, revisions: Sequence[str], extensions: Sequence[str]) -> list[Target]:
        """Return the packages of this checkout, or of the revisions of the user, with their conversions."""
        return installed(self, store, revisions, extensions)


EMITTER = PythonEmitter(emit)
