"""`mcp-bindgen history`: follow one thing through all revisions."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mcp_bindgen.diff.history import history as trace
from mcp_bindgen.diff.history import timeline
from mcp_bindgen.diff.reports.history import record, text
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

from .options import SOURCES, Folder, Semantics, Strict
from .output import page, print_json, say_corrections, say_decisions


def history(
    subject: Annotated[
        str, typer.Argument(help="A method, a definition, a member of one, or an error code: Tool.annotations")
    ],
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", metavar="SOURCE", help=f"A schema file that comes after all revisions: {SOURCES}."),
    ] = None,
    semantics: Semantics = None,
    folder: Folder = None,
    strict: Strict = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say since when something is there, what changed in it, what it was called, and when it went.

    Examples:

    `mcp-bindgen history tools/call`

    `mcp-bindgen history Tool.annotations --json`

    `mcp-bindgen history -32042`

    `mcp-bindgen history CallToolResult --schema draft.json` goes on to a schema file.
    """
    store = Store(folder, strict=strict)
    facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
    protocols = timeline(store, schema or [], facts)
    say_corrections(*protocols)
    say_decisions(*protocols)
    found = trace(subject, protocols)
    if as_json:
        print_json(record(found))
        return
    width, colour = page()
    sys.stdout.write(text(found, width=width, colour=colour))
