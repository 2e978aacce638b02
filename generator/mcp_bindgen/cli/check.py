"""`mcp-bindgen check`: compare bindings with their schemas."""

from __future__ import annotations

import typer

from mcp_bindgen.emit import bridges_of, drift, targets

from .options import (
    Extension,
    Folder,
    Only,
    Out,
    Package,
    RevisionName,
    Revisions,
    SchemaFile,
    Semantics,
    Strict,
    names,
)
from .output import say_copies, say_corrections, say_decisions, say_missing
from .terminal import StatusLine, say, write


def check(
    revisions: Revisions = None,
    out: Out = None,
    package: Package = None,
    schema: SchemaFile = None,
    revision: RevisionName = None,
    extension: Extension = None,
    semantics: Semantics = None,
    only: Only = None,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Regenerate into memory and compare; a difference is printed and exits with 1.

    Examples:

    `mcp-bindgen check` compares the bindings of all revisions in this checkout.

    `mcp-bindgen check 2025-11-25 --out src --package acme.mcp` compares bindings of your own.
    """
    wanted = targets(
        list(revisions or ()),
        out=out,
        package=package,
        schema=schema,
        name=revision,
        extensions=extension or (),
        semantics=semantics,
        folder=folder,
        strict=strict,
        only=names(only),
    )
    say_corrections(*(target.source for target in wanted))
    say_copies(*(target.source for target in wanted))
    drifted: list[str] = []
    for target in wanted:
        with StatusLine(f"checking {target.name}"):
            say_decisions(target.protocol)
            difference = drift(target.folder, target.render())
        if difference:
            drifted.append(target.command)
            write(difference)
        say(f"{target.name}  {'differs' if difference else 'in sync'}")
    wrong = False
    for steps in bridges_of(wanted) if out is None else ():
        with StatusLine("checking bridges"):
            difference = drift(steps.folder, steps.render())
            if not steps.is_told:
                difference += "docs/bridges.md does not say what the steps are\n"
        if difference:
            drifted.append(steps.command)
            write(difference)
        wrong = say_missing(steps) or wrong
        say(f"bridges  {'differ' if difference else 'in sync'}")
    if drifted:
        say(f"out of sync; run: {' && '.join(drifted)}", err=True)
    if drifted or wrong:
        raise typer.Exit(1)
