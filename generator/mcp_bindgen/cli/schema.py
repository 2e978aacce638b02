"""`mcp-bindgen schema`: list, import and verify the schemas that everything is generated from."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.diff.reports.text import text
from mcp_bindgen.diff.upstream import against
from mcp_bindgen.protocol.status import reports_of
from mcp_bindgen.spec import BadInput, Store, sources

from .options import SOURCES
from .output import MARKUP, page, print_table

schema = typer.Typer(
    help="List, import and verify the schemas that everything is generated from.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
)

Folder = Annotated[Path | None, typer.Option("--folder", metavar="DIR", help="Another schema/ folder than ours.")]
Revision = Annotated[str, typer.Argument(help="A revision such as 2025-11-25.")]
File = Annotated[str, typer.Argument(metavar="SOURCE", help=f"The schema.json that upstream publishes: {SOURCES}.")]


class Status(StrEnum):
    """The status of a revision that is imported."""

    RELEASED = "released"
    DRAFT = "draft"


@schema.command("list")
def list_(folder: Folder = None) -> None:
    """List the revisions.

    Example: `mcp-bindgen schema list`
    """
    print_table(
        ["REVISION", "ERA", "STATUS", "CHANGED", "UPSTREAM"],
        [[pin.name, pin.era, pin.status, pin.date, pin.commit] for pin in Store(folder).pins.values()],
    )


@schema.command("import")
def import_(
    revision: Revision,
    file: File,
    commit: Annotated[
        str | None, typer.Option(help="The upstream commit of the file; one from git: knows its own.")
    ] = None,
    status: Annotated[Status, typer.Option(help="Whether the revision is final.")] = Status.RELEASED,
    changed: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When upstream last changed it, if not on its date.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Import an upstream file: write its structure without prose, and pin it.

    Examples:

    `mcp-bindgen schema import 2025-11-25 schema.json --commit c4c367f9`

    `mcp-bindgen schema import 2025-11-25 git:../specification@main:schema/2025-11-25/schema.json`
    """
    source = sources.read(file)
    origin = commit or (source.commit.short if source.commit is not None else None)
    if origin is None:
        raise BadInput("the upstream commit is not known", file=source.label, fix="give --commit")
    pin = Store(folder).add(
        revision, source, commit=origin, status=status.value, changed=changed.date() if changed is not None else None
    )
    print(f"{pin.name}  {pin.era}  structure {pin.structure[:16]}")


@schema.command()
def verify(revision: Revision, file: File, folder: Folder = None) -> None:
    """Prove that our structure equals an upstream file; a difference is printed and exits with 1.

    Example: `mcp-bindgen schema verify 2025-11-25 schema.json`
    """
    same_bytes, differences = Store(folder).verify(revision, file)
    for line in differences:
        print(line)
    if differences:
        typer.echo(f"{revision}: {len(differences)} differences in structure", err=True)
        raise typer.Exit(1)
    print(
        f"{revision}: same structure, {'the pinned file' if same_bytes else 'but not the pinned file (prose differs)'}"
    )


@schema.command()
def status(
    folder: Folder = None,
    file: Annotated[
        str | None,
        typer.Option("--against", metavar="SOURCE", help=f"Say what a file that upstream released changes: {SOURCES}."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="NAME", help="The revision of that file; else the nearest.")
    ] = None,
) -> None:
    """Check the schema folder itself: pins, patches and words; anything wrong exits with 1.

    With --against it says what a schema file that upstream released changes compared with ours, and exits with 1 when
    messages or generated code change.

    Examples:

    `mcp-bindgen schema status`

    `mcp-bindgen schema status --against schema.json --revision 2025-11-25`
    """
    if file is not None:
        _against(Store(folder), file, revision)
        return
    if revision is not None:
        raise BadInput("--revision is the one of the file of --against", fix="give --against FILE, or leave it out")
    reports = reports_of(Store(folder))
    print_table(
        ["REVISION", "STRUCTURE", "PATCHES", "DEFINITIONS", "DOCUMENTED", "FIELDS DOCUMENTED"],
        [
            [
                report.revision,
                "as pinned" if report.pinned else "differs from its pin",
                str(report.patches),
                str(report.definitions),
                f"{report.documented_definitions}/{report.definitions}",
                f"{report.documented_fields}/{report.fields}",
            ]
            for report in reports
        ],
    )
    for report in reports:
        for pointer in report.unlisted:
            typer.echo(f"{report.revision}: list it in patches.toml among the revisions of {pointer}", err=True)
    if not all(report.sound for report in reports):
        raise typer.Exit(1)


def _against(store: Store, file: str, revision: str | None) -> None:
    source = sources.read(file)
    release = against(store, source, revision)
    if release.comparison.findings:
        width, colour = page()
        sys.stdout.write(text([release.comparison], width=width, colour=colour))
    else:
        print(f"{release.revision}: {source.label} changes nothing")
    for pointer in release.unfit:
        typer.echo(f"warning: the mistake of {pointer} is gone from {source.label}", err=True)
    if not release.same:
        raise typer.Exit(1)
