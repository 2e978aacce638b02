"""Testee of the generated Python bindings of mcp-bindgen."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter, ValidationError
from testee import Case, Rejected, Unsupported, serve

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
EXTENSIONS = {
    "io.modelcontextprotocol/skills@2026-07-28": "skills",
    "io.modelcontextprotocol/tasks@2026-07-28": "tasks",
    "io.modelcontextprotocol/ui@2026-01-26": "apps",
}
"""Extension -> package with its bindings."""


@cache
def adapter(revision: str, extension: str, definition: str) -> TypeAdapter[Any] | None:
    """Return the adapter of a definition, or None for an extension without bindings."""
    package = f"mcp_bindgen.v{revision.replace('-', '_')}"
    if extension:
        if extension not in EXTENSIONS:
            return None
        package += f".extensions.{EXTENSIONS[extension]}"
    return TypeAdapter(getattr(import_module(f"{package}.types"), definition))


def read(case: Case) -> tuple[str, str]:
    """Read and write a document."""
    found = adapter(case.revision, case.extension, case.definition)
    if found is None:
        raise Unsupported(case.extension)
    try:
        value = found.validate_json(case.text)
    except ValidationError as error:
        raise Rejected(str(error)) from None
    return found.dump_json(value).decode(), type(value).__name__


if __name__ == "__main__":
    serve("mcp-bindgen", version("mcp-bindgen"), REVISIONS, read)
