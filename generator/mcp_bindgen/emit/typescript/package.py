"""The files of an npm package."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.ir import Protocol

from ..emitter import Options
from ..extended import extended
from ..templates import environment, render
from . import names as naming
from .methods import Methods
from .types import index_text, meta_types, type_text

FOLDER = Path(__file__).parent / "templates"
_FILES = sorted(path.stem for path in FOLDER.iterdir() if path.stem != "stubs")
_TYPES = [name for name in _FILES if name.startswith(("index", "package", "ts", "types", "validat"))]
"""The files for a schema without messages, with which nothing can connect."""
_SCALARS = {name: name for name in ("string", "integer", "number", "boolean")} | {"null": "nothing"}
"""JSON type -> the function that checks its values."""

_WIDTH = 110
_DIRECTIVE = re.compile(r"([@#](?=\s*(?:__|ts-|source))|<(?=/script))", re.IGNORECASE)
"""Start of text with a meaning for compilers, bundlers or HTML, such as `@ts-ignore` and `#__NO_SIDE_EFFECTS__`."""

Values: TypeAlias = dict[str, Any]
"""Variables of templates."""


class _Constants(dict[str, str]):
    """Expression -> its constant, of values that all checks share; an expression uses earlier ones.

    Names with `$` differ from those of definitions and entries of servers.
    """

    def of(self, expression: str) -> str:
        """Return the constant of an expression."""
        return self.setdefault(expression, f"${len(self) + 1}")


def emit(model: Model, options: Options) -> Mapping[str, str]:
    """Return file name -> text of a package; raise `BadInput` if a template of the user is wrong."""
    protocol = extended(model.protocol)
    names = naming.types(protocol)
    first, *more = options.header(model, comment="").splitlines()
    values = module_values(protocol, names) | {
        "methods": Methods(protocol, names),
        "renamed": options.settings.names,
        "package": options.package,
        "version": _version(protocol.revision),
        "first": first,
        "more": [line for line in more if line],
    }
    files, templates = dict[str, str](), environment(FOLDER, options.templates)
    for name in _FILES if protocol.methods else _TYPES:
        text = render(templates, f"{name}.jinja", options.templates, "docs/how-to/typescript.md", **values)
        header = options.header(model, comment="//", with_digest=name == "types.ts")
        files[name] = text if name == "package.json" else f"{header}\n\n{text}"
    return files


def module_values(protocol: Protocol, names: Mapping[str, str], exact: Mapping[str, str] | None = None) -> Values:
    """Return the variables of templates for types and validators.

    Args:
        protocol: The model.
        names: Definition -> name of its type.
        exact: For a module that holds the types as well: definition with a validator -> JSON Schema to check too, as
            text, or an empty text. By default, modules of their own hold types and the validators of all definitions.
    """
    return {
        "comment": comment,
        "constants": _Constants(),
        "definitions": protocol.definitions.values(),
        "exact": exact,
        "index_text": index_text,
        "key": naming.key,
        "member": naming.member,
        "meta_types": meta_types,
        "names": names,
        "protocol": protocol,
        "scalars": _SCALARS,
        "text": naming.text,
        "type_text": type_text,
    }


def comment(text: str, indent: str = "", deprecated: str = "") -> str:
    """Return a documentation comment with the end of its line; empty without text."""
    parts = [*text.strip().splitlines(), *([f"@deprecated {deprecated}"] if deprecated else [])]
    printable = ["".join(char if char.isprintable() else " " for char in part) for part in parts]
    lines = [line for part in printable for line in textwrap.wrap(part, _WIDTH - len(indent)) or [""]]
    safe = [_DIRECTIVE.sub(r"\1\\", line).replace("*/", "*\\/") for line in lines]
    if not any(safe):
        return ""
    if len(safe) == 1:
        return f"{indent}/** {safe[0]} */\n"
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in ["/**", *(f" * {line}" for line in safe), " */"])


def _version(revision: str) -> str:
    """Return a version for npm: `2025.11.25` for `2025-11-25`, and `0.0.0` for a name without a date."""
    date = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", revision)
    return ".".join(str(int(part)) for part in date.groups()) if date else "0.0.0"
