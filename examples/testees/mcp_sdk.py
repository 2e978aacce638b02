"""Testee of the official Python SDK, 1.x and 2.x.

python mcp_sdk.py          public types: one set for all revisions
python mcp_sdk.py wire     internal types of 2.x: two sets, generated from schemas
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from testee import Case, Rejected, Unsupported, serve

IS_NEW = version("mcp").startswith("2.")
IS_WIRE = "wire" in sys.argv
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", *(("2026-07-28",) if IS_NEW else ()))
WITH_TOOLS = "2025-11-25"
"""First revision with tools in results of sampling."""
READERS = ("JSONRPCRequest", "JSONRPCNotification")
"""Types to report: confusion of these two changes the handling of a message."""


@cache
def types(revision: str) -> Any:
    """Return the module with the types of a revision."""
    if IS_WIRE:
        return import_module(f"mcp_types._v{'2026_07_28' if revision == '2026-07-28' else '2025_11_25'}")
    return import_module("mcp_types" if IS_NEW else "mcp.types")


@cache
def adapter(revision: str, definition: str) -> TypeAdapter[Any]:
    """Return the adapter of a definition; raise `Unsupported` if the SDK has none of its name."""
    found: Any = None
    if revision >= WITH_TOOLS and definition in ("CreateMessageResult", "SamplingMessage"):
        found = getattr(types(revision), f"{definition}WithTools", None)
    found = found or getattr(types(revision), definition, None)
    if found is None or found is Annotated:
        raise Unsupported(definition)
    return TypeAdapter(found)


def parse(revision: str, definition: str, value: Any) -> tuple[Any, str]:
    """Read and write a value; return it with the name of the type that read it."""
    found = adapter(revision, definition)
    try:
        read = found.validate_python(value, by_name=False) if IS_NEW else found.validate_python(value)
    except ValidationError as error:
        raise Rejected(str(error)) from None
    name = type(getattr(read, "root", read)).__name__  # 1.x wraps unions
    return found.dump_python(read, by_alias=True, mode="json", exclude_none=True), name


def read(case: Case) -> tuple[str, str]:
    """Read and write a document; the envelope of a message is read by its own type."""
    if case.extension:
        raise Unsupported(case.extension)
    value: Any = json.loads(case.text)
    envelope: dict[str, Any] = {}
    is_message = bool(case.kind) and not case.definition.startswith("JSONRPC") and case.text.lstrip().startswith("{")
    if is_message and case.envelope and not IS_WIRE:
        envelope, _ = parse(case.revision, f"JSONRPC{case.kind.title()}", value)
        value = {name: member for name, member in value.items() if name in ("method", "params")}
    adds_envelope = is_message and IS_WIRE and not case.envelope and case.revision < "2026-07-28"
    if adds_envelope:
        value = {"jsonrpc": "2.0", **({"id": 1} if case.kind == "request" else {}), **value}
    wrote, name = parse(case.revision, case.definition, value)
    if adds_envelope:
        wrote = {name: member for name, member in wrote.items() if name not in ("jsonrpc", "id")}
    return json.dumps({**envelope, **wrote} if envelope else wrote), name if name in READERS else ""


if __name__ == "__main__":
    mode = "wire" if IS_WIRE else "public"
    serve(f"mcp ({mode})", version("mcp"), REVISIONS, read)
