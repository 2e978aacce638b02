"""`mcp-bindgen schema`: list, import, remove, verify and check schemas."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

import typer

from mcp_bindgen.diff.accept import Accepted
from mcp_bindgen.diff.upstream import against
from mcp_bindgen.ir import status as checks
from mcp_bindgen.report import Format
from mcp_bindgen.report.diff import comparison_report
from mcp_bindgen.spec import BadInput, DiagnosticContext, Store, Upstream, sources
from mcp_bindgen.spec.extension import is_id
from mcp_bindgen.spec.pins import Pin
from mcp_bindgen.spec.store import user_folder

from .options import SOURCES, Commands, Folder, Json, Semantics, Strict, option
from .options import Revision as RevisionOption
from .output import print_facts, print_json, print_report, say_corrections, say_diagnostics, say_gaps
from .terminal import StatusLine, say, write

schema = Commands("List, import, remove, verify and check schemas.")

Revision = Annotated[str, typer.Argument(help="A revision such as 2025-11-25, or an extension: tasks@2026-07-28.")]
File = Annotated[str, typer.Argument(metavar="SOURCE", help=f"The schema.json that upstream publishes: {SOURCES}.")]


@schema.command("list")
def list_(folder: Folder = None, as_json: Json = False) -> None:
    """List revisions and extensions, and their origin: this installation or your own folder.

    Examples:

    `mcp-bindgen schema list`

    `mcp-bindgen schema list --json`
    """
    store = Store(folder)

    def fact(pin: Pin, origin: str = "", **more: object) -> dict[str, Any]:
        stated = {one: getattr(pin, one) or None for one in ("status", "date", "source")}
        kept = origin or ("your folder" if store.is_users(pin) else "mcp-bindgen")
        return {"name": pin.name, **more, **stated, "from": kept}

    revisions = [fact(pin, era=pin.era) for pin in store.pins.values()]
    revisions += [fact(pin, "your folder, hidden by ours", era=pin.era) for pin in store.hidden]
    extensions = [
        fact(pin, name=f"{store.module(pin)}@{pin.name}", version=pin.name, id=pin.id, extends=store.cores(pin))
        for pin in store.extension_pins
    ]
    if as_json:
        print_json([*revisions, *extensions])
        return
    more = {"STATUS": "status", "CHANGED": "date", "UPSTREAM": "source"}
    print_facts(revisions, {"REVISION": "name", "ERA": "era", **more, "FROM": "from"})
    if extensions:
        say()
        print_facts(extensions, {"EXTENSION": "name", "ID": "id", **more, "EXTENDS": "extends", "FROM": "from"})
    if store.users is not None:
        say(f"Your folder: {store.users.parent}")


@schema.command("import")
def import_(
    revision: Annotated[
        str, typer.Argument(help="Name of the revision: a date, any name for a draft, or ID@VERSION for an extension.")
    ],
    file: File,
    commit: Annotated[str, option("commit")] = "",
    status: Annotated[Literal["released", "draft"] | None, option("status")] = None,
    changed: Annotated[datetime | None, option("changed")] = None,
    semantics: Semantics = None,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Import an upstream file under a name, and pin it.

    A checkout, or --folder, receives the structure without prose. Otherwise your own folder receives the file with its
    prose and the generated bindings; the installation does not change. `schema list` prints that folder, and the
    environment variable MCP_BINDGEN_HOME sets another folder.

    Copies of core definitions in an extension are left out, and different ones are reported. --semantics states the
    senders of its messages and the methods that they extend.

    Examples:

    `mcp-bindgen schema import draft git:../specification@main:schema/draft/schema.json`

    `mcp-bindgen schema import 2025-11-25 schema.json --commit c4c367f9`

    `mcp-bindgen schema import com.example/jobs@draft jobs.json --semantics jobs.toml`
    """
    from mcp_bindgen.emit.python.installation import bridges, is_checkout
    from mcp_bindgen.emit.python.user_revisions import import_revision  # its imports take time

    source = sources.read(file)
    context = DiagnosticContext(source.label, strict=strict)
    origin = commit or (source.commit.short if source.commit is not None else "")
    day = changed.date() if changed is not None else None
    upstream = Upstream(source, origin, status, day, semantics, context)
    if is_id(revision.partition("@")[0]):
        home = None if folder is not None or is_checkout() else user_folder()
        root = home / "schema" if home is not None else None
        imported, copies = Store(folder).add_extension(revision, upstream, root)
        say(f"{imported.label}  structure {imported.structure[:16]}")
        for copy in copies:
            say(f"differs from core: {source.label}: {copy}", err=True)
        say_diagnostics(context)
        return
    if folder is not None or is_checkout():
        pin, target = Store(folder).add(revision, upstream), None
    else:
        with StatusLine(f"importing {revision}"):
            pin, target = import_revision(revision, upstream)
    say(f"{pin.name}  {pin.era}  structure {pin.structure[:16]}")
    if target is None:
        say_diagnostics(context)
        return
    say(f"{target.options.package}  {target.folder}")
    say_corrections(target.source)
    say_diagnostics(context, target)
    say_gaps(target, bridges(target.emitter, Store(), target.folder.parent, users=True))


@schema.command()
def remove(revision: Revision, folder: Folder = None) -> None:
    """Remove a revision, or one version of an extension, with its bindings from your own folder, or from --folder.

    Example: `mcp-bindgen schema remove draft`
    """
    from mcp_bindgen.emit.python.user_revisions import remove_revision

    store = Store(folder)
    if store.is_extension(revision):
        if folder is None and not store.is_users(revision):
            raise BadInput(
                f"{revision} belongs to this installation", fix="name one of your own folder, or give --folder"
            )
        say(f"{store.remove(revision).label}  removed")
        return
    if folder is not None:
        store.remove(revision)
    else:
        remove_revision(revision)
    say(f"{revision}  removed")


@schema.command()
def verify(revision: Revision, file: File, folder: Folder = None, as_json: Json = False) -> None:
    """Compare our structure with an upstream file; the exit code is 1 if they differ.

    Examples:

    `mcp-bindgen schema verify 2025-11-25 schema.json`

    `mcp-bindgen schema verify 2025-11-25 schema.json --json`
    """
    store = Store(folder)
    same_bytes, differences = store.verify(revision, file)
    if as_json:
        print_json({"revision": revision, "isPinnedFile": same_bytes, "differences": differences})
        raise typer.Exit(bool(differences))
    for line in differences:
        say(line)
    if differences:
        say(f"{revision}: {len(differences)} differences in structure", err=True)
        raise typer.Exit(1)
    say(f"{revision}: same structure, {'the pinned file' if same_bytes else 'but not the pinned file (prose differs)'}")


@schema.command()
def status(
    folder: Folder = None,
    file: Annotated[str | None, option("against")] = None,
    revision: RevisionOption = None,
    stubs: Annotated[bool, option("stubs")] = False,
    as_json: Json = False,
) -> None:
    """Check the schema folder: pins, patches and descriptions; the exit code is 1 if something is wrong.

    The table is followed by tasks for drafts, for problems and for --revision: missing descriptions, outdated facts in
    semantics.toml, new methods without a capability, and errors that prevent reading a revision.

    --against compares a schema file of upstream with ours; the exit code is 1 if messages or generated code change.

    Examples:

    `mcp-bindgen schema status`

    `mcp-bindgen schema status --revision 2026-07-28`

    `mcp-bindgen schema status --stubs >> schema/docs.toml`

    `mcp-bindgen schema status --against schema.json --revision 2025-11-25`
    """
    store = Store(folder)
    if file is not None:
        if stubs:
            raise BadInput("--stubs and --against exclude each other", fix="leave one of them out")
        _against(store, file, revision, as_json=as_json)
        return
    named = revision is not None and store.is_extension(revision)
    reports = [] if named else checks.reports_of(store, revision)
    others = checks.extension_reports(store, revision) if named or revision is None else []
    both: list[checks.Report | checks.ExtensionReport] = [*reports, *others]
    sound = all(report.sound for report in both)
    if stubs:
        write(checks.entries(reports, store.docs))
        return
    if as_json:
        print_json([{**asdict(report), "sound": report.sound} for report in both])
    else:
        _print_status(reports, others, is_asked=revision is not None)
    if not sound:
        raise typer.Exit(1)


def _print_status(reports: list[checks.Report], others: list[checks.ExtensionReport], *, is_asked: bool) -> None:
    if reports:
        print_facts(
            reports,
            {
                "REVISION": "revision",
                "STRUCTURE": _structure,
                "PATCHES": "patches",
                "DEFINITIONS": "definitions",
                "DOCUMENTED": lambda report: _documented(report)[0],
                "FIELDS DOCUMENTED": lambda report: _documented(report)[1],
            },
        )
    for report in reports:
        if is_asked or report.is_open:
            write("".join(f"{line}\n" for line in checks.tasks(report)))
        for pointer in report.unlisted:
            say(f"{report.revision}: list it in patches.toml among the revisions of {pointer}", err=True)
    if others:
        if reports:
            say()
        print_facts(
            others,
            {
                "EXTENSION": "label",
                "STRUCTURE": _structure,
                "EXTENDS": lambda report: ", ".join(report.cores) or "-",
                "DEFINITIONS": "definitions",
                "WITHOUT WORDS": lambda report: str(len(report.undocumented)),
            },
        )
    for other in others:
        if is_asked or not other.sound:
            write("".join(f"{line}\n" for line in checks.tasks(other)))


def _structure(report: checks.Report | checks.ExtensionReport) -> str:
    return "as pinned" if report.pinned else "differs from its pin"


def _documented(report: checks.Report) -> tuple[str, str]:
    """Return how many definitions and fields have a description."""
    if report.has_prose:
        return "in its file", "in its file"
    definitions = report.definitions - len(report.undocumented_definitions)
    fields = report.fields - len(report.undocumented_fields)
    return f"{definitions}/{report.definitions}", f"{fields}/{report.fields}"


def _against(store: Store, file: str, revision: str | None, *, as_json: bool) -> None:
    source = sources.read(file)
    release = against(store, source, revision)
    if release.comparison.findings or as_json:
        print_report(comparison_report(Accepted((release.comparison,))), Format.JSON if as_json else Format.TEXT)
    else:
        say(f"{release.revision}: {source.label} changes nothing")
    for pointer in release.unfit:
        say(f"warning: the mistake of {pointer} is gone from {source.label}", err=True)
    if not release.same:
        raise typer.Exit(1)
