"""`mcp-bindgen watch`: say what changed in a schema file since the last look."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.diff.reports.watch import LookFormat, render_look
from mcp_bindgen.diff.watch import State, state_path
from mcp_bindgen.spec import BadInput, Store, sources
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.transaction import save

from .diff import FailOn, fails, style
from .options import SOURCES, Semantics, Strict
from .output import say_corrections, say_decisions
from .terminal import StatusLine, write_report


def watch(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=f"A schema file: {SOURCES}.")],
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Remember there what was seen; else in your own state folder."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what was remembered before.")] = False,
    format: Annotated[LookFormat, typer.Option("--format", help="What the report looks like.")] = LookFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
    witness: Annotated[bool, typer.Option("--witness", help="Show a value that proves each change.")] = False,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="Exit with 1 when such a change is there.")] = FailOn.ANY,
    semantics: Semantics = None,
    strict: Strict = False,
) -> None:
    """Say what changed in a schema file since the last look; a change exits with 1.

    The first look has nothing to compare with, says so and exits with 0. What was seen is remembered once the report
    is written; a file that cannot be read exits with 2, and nothing is forgotten.

    Examples:

    `mcp-bindgen watch git:../specification@main:schema/draft/schema.json`

    `mcp-bindgen watch https://example.org/schema.json --state seen.json --format markdown --output issue.md`

    `mcp-bindgen watch draft.json --keep --fail-on breaking`
    """
    store = Store(strict=strict)
    if source in store.pins:
        raise BadInput(f"{source!r} is a revision of ours, which does not change", fix="name a schema file")
    if source == sources.STDIN and state is None:
        raise BadInput("standard input has no name to be remembered by", fix="give --state FILE")
    facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
    with StatusLine("reading"):
        read = sources.read(source)
        remembered = State(state or state_path(read))
        look = remembered.look(read, store, facts, evidence=witness or format is LookFormat.JSON)
    say_corrections(look.protocol)
    say_decisions(look.protocol)
    report = render_look(look, format, style(output, witness))
    if output is not None:
        save(output, report, "give another --output")
    else:
        write_report(report)
    if not keep:
        remembered.remember(read, date.today())
    if look.comparison is not None and fails(fail_on, look.comparison.findings):
        raise typer.Exit(1)
