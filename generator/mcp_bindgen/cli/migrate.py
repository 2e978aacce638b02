"""`mcp-bindgen migrate`: list what has to change in somebody's code for another revision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.extensions import tell_moves
from mcp_bindgen.diff.migration import migrate as read_project
from mcp_bindgen.diff.migration.report import Format, github, record, text
from mcp_bindgen.diff.source import load
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

from .options import SOURCES, Folder, Semantics, Strict
from .output import page, print_json, say_corrections, say_decisions
from .terminal import write, write_report


def migrate(
    old: Annotated[
        str, typer.Argument(help=f"The revision or schema file ({SOURCES}) of the bindings that the code uses.")
    ],
    new: Annotated[str, typer.Argument(help="The one that it is to use.")],
    path: Annotated[Path, typer.Argument(help="A folder of Python code, or one file.")] = Path(),
    format: Annotated[Format, typer.Option("--format", help="What the report looks like.")] = Format.TEXT,
    package: Annotated[
        str | None, typer.Option("--package", metavar="NAME", help="Import name of bindings of your own in that code.")
    ] = None,
    semantics: Semantics = None,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """List what your code uses of the bindings that another revision has not, or has otherwise; nothing is written.

    A use that may be something else, because what your code says of it allows for both, is marked with "perhaps".
    Handlers that run again from their start after each question to the client are listed with the lines that run again.
    The exit code is 1 when there is something to change.

    Examples:

    `mcp-bindgen migrate 2025-06-18 2025-11-25` reads all Python code in this folder.

    `mcp-bindgen migrate 2025-11-25 2026-07-28 src/server.py --format github` annotates a workflow.

    `mcp-bindgen migrate 2025-11-25 draft.json src --package acme.mcp` reads code with bindings of your own.
    """
    store = Store(folder, strict=strict)
    facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
    ((before, after),) = load([old, new], store, facts)
    say_corrections(before, after)
    say_decisions(before, after)
    found = read_project(tell_moves(compare(before, after), store), path, package=package)
    match format:
        case Format.TEXT:
            width, colour = page()
            write_report(text(found, width=width, colour=colour))
        case Format.JSON:
            print_json(record(found))
        case Format.GITHUB:
            write(github(found))
    if found.uses:
        raise typer.Exit(1)
