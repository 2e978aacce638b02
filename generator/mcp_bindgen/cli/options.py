"""The options that `generate` and `check` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.spec import BadInput

from . import complete

SOURCES = "a path, an https address, git:REPO@REV:PATH or - for standard input"

Revisions = Annotated[
    list[str] | None,
    typer.Argument(help="Revisions such as 2025-11-25; all when none is given.", autocompletion=complete.revisions),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for a package of your own.")]
Package = Annotated[str | None, typer.Option("--package", metavar="NAME", help="Import name of that package.")]
SchemaFile = Annotated[
    str | None,
    typer.Option("--schema", metavar="SOURCE", help=f"Generate from any schema file, a draft or a fork: {SOURCES}."),
]
RevisionName = Annotated[
    str | None, typer.Option("--revision", metavar="NAME", help="What to call the revision of --schema.")
]
Extension = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        metavar="NAME",
        help=f"Just this extension of the revision, e.g. tasks; with --semantics {SOURCES}.",
        autocompletion=complete.extensions,
    ),
]
Semantics = Annotated[
    Path | None,
    typer.Option("--semantics", metavar="FILE", help="Facts that the file of --schema or --extension cannot state."),
]
With = Annotated[
    list[str] | None,
    typer.Option("--extension", metavar="NAME", help="With an extension: tasks, or tasks@draft; may be repeated."),
]
Folder = Annotated[Path | None, typer.Option("--folder", metavar="DIR", help="Another schema/ folder than ours.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop where a schema file breaks a rule, instead of warning how it was read.")
]
Only = Annotated[
    str | None, typer.Option("--only", metavar="NAMES", help="Just what these capabilities need: tools,resources")
]


def names(only: str | None, option: str = "--only") -> tuple[str, ...]:
    """Return the names in the comma-separated list of an option; raise `BadInput` when the list is empty."""
    found = tuple(name.strip() for name in (only or "").split(",") if name.strip())
    if only is not None and not found:
        raise BadInput(
            f"{option} names no capability", fix=f"name some, as in {option} tools,resources, or leave it out"
        )
    return found
