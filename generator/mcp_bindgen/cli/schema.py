"""`mcp-bindgen schema`: list, import, remove and verify the schemas that everything is generated from."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.diff.reports.text import text
from mcp_bindgen.diff.upstream import against
from mcp_bindgen.protocol.extension_status import ExtensionReport, extension_reports, extension_tasks
from mcp_bindgen.protocol.status import Report, entries, reports_of, tasks
from mcp_bindgen.spec import BadInput, Extensions, Reading, Store, sources
from mcp_bindgen.spec.extension import is_id
from mcp_bindgen.spec.store import user_folder

from .options import SOURCES, Folder, Strict
from .output import (
    MARKUP,
    page,
    print_json,
    print_table,
    say_corrections,
    say_decisions,
    say_incomplete,
    say_missing,
)
from .terminal import StatusLine, say, write, write_report

schema = typer.Typer(
    help="List, import, remove and verify the schemas that everything is generated from.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
)

Revision = Annotated[str, typer.Argument(help="A revision such as 2025-11-25, or an extension: tasks@2026-07-28.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[str, typer.Argument(metavar="SOURCE", help=f"The schema.json that upstream publishes: {SOURCES}.")]


class Status(StrEnum):
    """The status of a revision that is imported."""

    RELEASED = "released"
    DRAFT = "draft"


@schema.command("list")
def list_(folder: Folder = None, as_json: Json = False) -> None:
    """List revisions and extensions, and where each comes from: from this installation, or from your own folder.

    Examples:

    `mcp-bindgen schema list`

    `mcp-bindgen schema list --json`
    """
    store = Store(folder)
    rows = [(pin, "your folder" if store.is_users(pin.name) else "mcp-bindgen") for pin in store.pins.values()]
    rows += [(pin, "your folder, hidden by ours") for pin in store.hidden]
    extensions = Extensions(store)
    others = [(pin, "your folder" if extensions.is_users(pin) else "mcp-bindgen") for pin in extensions.pins]
    if as_json:
        names = ("name", "era", "status", "date", "commit")
        records = [{**{name: getattr(pin, name) or None for name in names}, "from": origin} for pin, origin in rows]
        known = ("id", "version", "status", "date", "source")
        records += [
            {
                "name": f"{extensions.module(pin)}@{pin.version}",
                **{name: getattr(pin, name) or None for name in known},
                "extends": extensions.cores(pin),
                "from": origin,
            }
            for pin, origin in others
        ]
        print_json(records)
        return
    print_table(
        ["REVISION", "ERA", "STATUS", "CHANGED", "UPSTREAM", "FROM"],
        [[pin.name, pin.era, pin.status, pin.date, pin.commit or "-", origin] for pin, origin in rows],
    )
    if others:
        say()
        print_table(
            ["EXTENSION", "ID", "STATUS", "CHANGED", "UPSTREAM", "EXTENDS", "FROM"],
            [
                [
                    f"{extensions.module(pin)}@{pin.version}",
                    *(pin.id, pin.status, pin.date, pin.source or "-", ", ".join(extensions.cores(pin)) or "-", origin),
                ]
                for pin, origin in others
            ],
        )
    if store.users is not None:
        say(f"Your folder: {store.users.parent}")


@schema.command("import")
def import_(
    revision: Annotated[
        str, typer.Argument(help="What to call it: its date, any name for a draft, or ID@VERSION of an extension.")
    ],
    file: File,
    commit: Annotated[str, typer.Option(help="The upstream commit of the file; one from git: knows its own.")] = "",
    status: Annotated[
        Status | None, typer.Option(help="Whether the revision is final; by default, what is named after a date is.")
    ] = None,
    changed: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When upstream last changed it, if not on its date.")
    ] = None,
    semantics: Annotated[
        Path | None, typer.Option("--semantics", metavar="FILE", help="Facts that only this revision needs.")
    ] = None,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Import an upstream file and pin it, so that every command knows it by its name.

    A checkout, or --folder, gets its structure without prose. Otherwise it goes into your own folder, with its prose,
    and its bindings are generated there, or nothing is written: nothing that is installed changes. `schema list` shows
    that folder; the environment variable MCP_BINDGEN_HOME names another one.

    Of an extension, what it has beside core is kept: copies of core definitions are left out, and those that differ are
    reported. Its facts, --semantics, say who sends its messages and what they extend.

    Examples:

    `mcp-bindgen schema import draft git:../specification@main:schema/draft/schema.json`

    `mcp-bindgen schema import 2025-11-25 schema.json --commit c4c367f9`

    `mcp-bindgen schema import com.example/jobs@draft jobs.json --semantics jobs.toml`
    """
    from mcp_bindgen.emit.target import bridges_of, is_checkout
    from mcp_bindgen.emit.user_revisions import import_revision  # what it is made with takes time to load

    source = sources.read(file)
    reading = Reading(source.label, strict=strict)
    given: dict[str, Any] = {
        "reading": reading,
        "commit": commit or (source.commit.short if source.commit is not None else ""),
        "status": status.value if status is not None else None,
        "changed": changed.date() if changed is not None else None,
        "semantics": semantics,
    }
    if is_id(revision.partition("@")[0]):
        given["source"] = given.pop("commit")
        home = None if folder is not None or is_checkout() else user_folder()
        imported, copies = Extensions(Store(folder)).add(
            revision, source, root=home / "schema" if home is not None else None, **given
        )
        say(f"{imported.id}@{imported.version}  structure {imported.structure[:16]}")
        for copy in copies:
            say(f"differs from core: {source.label}: {copy}", err=True)
        say_decisions(reading)
        return
    if folder is not None or is_checkout():
        pin = Store(folder).add(revision, source, **given)
        say(f"{pin.name}  {pin.era}  structure {pin.structure[:16]}")
        say_decisions(reading)
        return
    with StatusLine(f"importing {revision}"):
        pin, target = import_revision(revision, source, **given)
    say(f"{pin.name}  {pin.era}  structure {pin.structure[:16]}")
    say(f"{target.package}  {target.folder}")
    say_corrections(target.source)
    say_decisions(reading, target.protocol)
    say_incomplete(target.protocol)
    for steps in bridges_of([target]):
        say_missing(steps)


@schema.command()
def remove(revision: Revision, folder: Folder = None) -> None:
    """Remove a revision from your own folder, with its bindings; or its structure from --folder.

    Of an extension, the named version is removed.

    Example: `mcp-bindgen schema remove draft`
    """
    from mcp_bindgen.emit.user_revisions import remove_revision

    store = Store(folder)
    extensions = Extensions(store)
    if revision not in store.pins and extensions.is_extension(revision):
        if folder is None and not extensions.is_users(extensions.pin(revision)):
            raise BadInput(f"{revision} is of this installation", fix="name one of your own folder, or give --folder")
        gone = extensions.remove(revision)
        say(f"{gone.id}@{gone.version}  removed")
        return
    if folder is not None:
        Store(folder).remove(revision)
    else:
        remove_revision(revision)
    say(f"{revision}  removed")


@schema.command()
def verify(revision: Revision, file: File, folder: Folder = None) -> None:
    """Prove that our structure equals an upstream file; a difference is printed and exits with 1.

    Example: `mcp-bindgen schema verify 2025-11-25 schema.json`
    """
    store = Store(folder)
    extensions = Extensions(store)
    known = revision not in store.pins and extensions.is_extension(revision)
    if not known:
        store.pin(revision)  # says which revisions there are
    same_bytes, differences = (extensions if known else store).verify(revision, file)
    for line in differences:
        say(line)
    if differences:
        say(f"{revision}: {len(differences)} differences in structure", err=True)
        raise typer.Exit(1)
    say(f"{revision}: same structure, {'the pinned file' if same_bytes else 'but not the pinned file (prose differs)'}")


@schema.command()
def status(
    folder: Folder = None,
    file: Annotated[
        str | None,
        typer.Option("--against", metavar="SOURCE", help=f"Say what a file that upstream released changes: {SOURCES}."),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="NAME", help="Just this one, in detail; of --against: else the nearest."),
    ] = None,
    stubs: Annotated[
        bool, typer.Option("--stubs", help="Print entries for docs.toml, to fill in, for what has no words.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the schema folder itself: pins, patches and words; anything wrong exits with 1.

    Below the table is what a person has to write or to look at: of drafts, of what is wrong, and of --revision. That
    is definitions and fields without words, facts of semantics.toml about what the revision before had, new methods
    without a capability, and what keeps a revision from being read.

    With --against it says what a schema file that upstream released changes compared with ours, and exits with 1 when
    messages or generated code change.

    Examples:

    `mcp-bindgen schema status`

    `mcp-bindgen schema status --revision 2026-07-28`

    `mcp-bindgen schema status --stubs >> schema/docs.toml`

    `mcp-bindgen schema status --against schema.json --revision 2025-11-25`
    """
    store = Store(folder)
    if file is not None:
        if stubs:
            raise BadInput("--stubs and --against are two things", fix="leave one of them out")
        _against(store, file, revision)
        return
    extensions = Extensions(store)
    named = revision is not None and revision not in store.pins and extensions.is_extension(revision)
    reports = [] if named else reports_of(store, revision)
    others = extension_reports(extensions, revision) if named or revision is None else []
    both: list[Report | ExtensionReport] = [*reports, *others]
    sound = all(report.sound for report in both)
    if stubs:
        write(entries(reports, store.docs))
        return
    if as_json:
        print_json([{**asdict(report), "sound": report.sound} for report in both])
        if not sound:
            raise typer.Exit(1)
        return
    if reports:
        _print_revisions(reports)
    for report in reports:
        if revision is not None or report.is_open:
            write("".join(f"{line}\n" for line in tasks(report)))
        for pointer in report.unlisted:
            say(f"{report.revision}: list it in patches.toml among the revisions of {pointer}", err=True)
    if others:
        _print_extensions(others, first=not reports)
    for other in others:
        if revision is not None or not other.sound:
            write("".join(f"{line}\n" for line in extension_tasks(other)))
    if not sound:
        raise typer.Exit(1)


def _print_revisions(reports: list[Report]) -> None:
    print_table(
        ["REVISION", "STRUCTURE", "PATCHES", "DEFINITIONS", "DOCUMENTED", "FIELDS DOCUMENTED"],
        [
            [
                report.revision,
                "as pinned" if report.pinned else "differs from its pin",
                str(report.patches),
                str(report.definitions),
                *_documented(report),
            ]
            for report in reports
        ],
    )


def _print_extensions(reports: list[ExtensionReport], *, first: bool) -> None:
    if not first:
        say()
    print_table(
        ["EXTENSION", "STRUCTURE", "EXTENDS", "DEFINITIONS", "WITHOUT WORDS"],
        [
            [
                f"{report.id}@{report.version}",
                "as pinned" if report.pinned else "differs from its pin",
                ", ".join(report.cores) or "-",
                str(report.definitions),
                str(len(report.undocumented)),
            ]
            for report in reports
        ],
    )


def _documented(report: Report) -> tuple[str, str]:
    """Return how many definitions and fields have words of ours."""
    if report.has_prose:
        return "by its file", "by its file"
    definitions = report.definitions - len(report.undocumented_definitions)
    fields = report.fields - len(report.undocumented_fields)
    return f"{definitions}/{report.definitions}", f"{fields}/{report.fields}"


def _against(store: Store, file: str, revision: str | None) -> None:
    source = sources.read(file)
    release = against(store, source, revision)
    if release.comparison.findings:
        width, colour = page()
        write_report(text([release.comparison], width=width, colour=colour))
    else:
        say(f"{release.revision}: {source.label} changes nothing")
    for pointer in release.unfit:
        say(f"warning: the mistake of {pointer} is gone from {source.label}", err=True)
    if not release.same:
        raise typer.Exit(1)
