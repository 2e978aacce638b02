"""`mcp-bindgen migrate`: list or make the changes that your code needs for another revision."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.extensions import tell_moves
from mcp_bindgen.diff.source import load
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.migrate import migrate as read_project
from mcp_bindgen.migrate.report import document, record
from mcp_bindgen.report import Format, Report
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.transaction import put

from .options import SOURCES, Folder, Out, Package, ReportFormat, Semantics, Strict, facts
from .output import print_report, say_reading


def migrate(
    old: Annotated[
        str, typer.Argument(help=f"The revision or schema file ({SOURCES}) of the bindings that the code uses.")
    ],
    new: Annotated[str, typer.Argument(help="The revision or schema file to change to.")],
    path: Annotated[Path, typer.Argument(help="A folder of Python code, or one file.")] = Path(),
    format: ReportFormat = Format.TEXT,
    out: Out = None,
    package: Package = None,
    rewrite: Annotated[bool, typer.Option("--write", help="Make the changes that need no decision.")] = False,
    semantics: Semantics = None,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """List the changes that your code needs for another revision, or make them.

    mypy checks a copy of your code with the bindings of the other revision. Each error that only these bindings cause
    is listed with its replacement. Handlers that run again from their start after each question to the client are
    listed with the lines that run again.

    With --write, imports, renamed names and members, removed keywords and similar changes are made in place; the list
    is what is left to you. Have the code under version control. The exit code is 1 if something is left to change.

    Examples:

    `mcp-bindgen migrate 2025-06-18 2025-11-25` reads all Python code in this folder.

    `mcp-bindgen migrate 2025-11-25 2026-07-28 src --write` rewrites the code in `src`.

    `mcp-bindgen migrate 2025-11-25 2026-07-28 src/server.py --format github` annotates a workflow.

    `mcp-bindgen migrate 2025-11-25 draft.json src --package acme.mcp` reads code with bindings of your own.
    """
    store = Store(folder, strict=strict)
    ((before, after),) = load([old, new], store, facts(store, semantics))
    say_reading(before, after)
    found = read_project(
        tell_moves(compare(lower(before), lower(after)), store), path, package=package, rewrite=rewrite
    )
    put(path if path.is_dir() else path.parent, found.edited, follow_links=True)
    print_report(Report(partial(document, found), partial(record, found)), format, out)
    if found.uses:
        raise typer.Exit(1)
