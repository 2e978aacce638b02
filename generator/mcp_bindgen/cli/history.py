"""`mcp-bindgen history`: follow one thing through all revisions."""

from __future__ import annotations

from typing import Annotated

import typer

from mcp_bindgen.diff.extensions import timelines
from mcp_bindgen.diff.history import History, timeline
from mcp_bindgen.diff.history import history as trace
from mcp_bindgen.diff.reports.history import record, text
from mcp_bindgen.diff.selectors import find
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

from .options import SOURCES, Folder, Semantics, Strict
from .output import page, print_json, say_corrections, say_decisions
from .terminal import say, write_report


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

    What extensions have is followed through their versions.

    Examples:

    `mcp-bindgen history tools/call`

    `mcp-bindgen history Tool.annotations --json`

    `mcp-bindgen history -32042`

    `mcp-bindgen history tasks/get` tells of core, and of the extension that it moved to.

    `mcp-bindgen history CallToolResult --schema draft.json` goes on to a schema file.
    """
    store = Store(folder, strict=strict)
    facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
    protocols = timeline(store, schema or [], facts)
    say_corrections(*protocols)
    say_decisions(*protocols)
    versions = timelines(subject, store)
    in_core = not versions or any(find(protocol, subject) is not None for protocol in protocols)
    found: list[tuple[str | None, History]] = [(None, trace(subject, protocols))] if in_core else []
    found += [(id, trace(subject, line)) for id, line in versions.items()]
    if as_json:
        first, *others = [{**record(one), "origin": id} for id, one in found]
        print_json({**first, "extensions": others})
        return
    width, colour = page()
    for number, (id, one) in enumerate(found):
        if id is not None:
            for line in [*([""] if number else []), f"In the extension {id}:"]:
                say(line)
        write_report(text(one, width=width, colour=colour))
