"""`mcp-bindgen migrate` and `upgrade`: change code and projects to another revision."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.conversion.steps import rules_of
from mcp_bindgen.diff import compare
from mcp_bindgen.diff.extensions import tell_moves
from mcp_bindgen.diff.source import gates, load
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.migrate import migrate as read_project
from mcp_bindgen.migrate.report import document, record
from mcp_bindgen.report import Format, Report
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.scaffold.upgrade import Upgrade, added, remaining, replaced
from mcp_bindgen.scaffold.upgrade import upgrade as prepare
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.errors import several
from mcp_bindgen.spec.revisions import order
from mcp_bindgen.spec.transaction import put, unified_diff

from . import options
from .output import page, print_report, say_diagnostics
from .terminal import say, write_patch


def migrate(
    old: Annotated[
        str, typer.Argument(help=f"The revision or schema file ({options.SOURCES}) of the bindings that the code uses.")
    ],
    new: Annotated[str, typer.Argument(help="The revision or schema file to change to.")],
    path: Annotated[Path, typer.Argument(help="A folder of Python code, or one file.")] = Path(),
    format: options.ReportFormat = Format.TEXT,
    out: options.Out = None,
    package: options.Package = None,
    rewrite: Annotated[bool, options.option("write")] = False,
    *,
    schemas: options.Schemas,
) -> None:
    """List the changes that your code needs for another revision, or make them.

    mypy checks a copy of your code with the bindings of the other revision. Each error that only these bindings cause
    is listed with its replacement. Handlers that run again from their start after each question to the client are
    listed with the lines that run again.

    With --write, imports, renamed names and members, uses of members that `bridges.toml` moves and similar changes are
    made in place, and removed keywords become comments. The list is left to you, with `# TODO` at each line. Have the
    code under version control. The exit code is 1 if it has lines.

    Examples:

    `mcp-bindgen migrate 2025-06-18 2025-11-25` reads all Python code in this folder.

    `mcp-bindgen migrate 2025-11-25 2026-07-28 src --write` rewrites the code in `src`.

    `mcp-bindgen migrate 2025-11-25 2026-07-28 src/server.py --format github` annotates a workflow.

    `mcp-bindgen migrate 2025-11-25 draft.json src --package acme.mcp` reads code with bindings of your own.
    """
    ((before, after),) = load([old, new], schemas.store, schemas.facts)
    say_diagnostics(before, after)
    rules = rules_of(schemas.store, before.revision, after.revision)
    compared = tell_moves(compare(lower(before), lower(after), gates=gates(schemas.store)), schemas.store)
    found = read_project(compared, path, package=package, rewrite=rewrite, rules=rules)
    put(path if path.is_dir() else path.parent, found.edited, follow_links=True)
    print_report(Report(partial(document, found), partial(record, found)), format, out)
    if found.uses:
        raise typer.Exit(1)


_MAX_PLACES = 6
"""Maximum number of places of one kind in the report."""

_SAME = "The transports and their start do not change."


def upgrade(
    project: Annotated[Path, typer.Argument(help="The folder of the project.")],
    to: Annotated[str | None, options.option("to", options.complete_revisions)] = None,
    add: Annotated[str | None, options.option("add", options.complete_revisions)] = None,
    replaces: Annotated[str | None, options.option("replace")] = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
) -> None:
    """Change a scaffolded project to another revision, newer or older.

    Generated files are generated again; edited ones remain. Your own files are rewritten as by `migrate --write`:
    imports, names, and members by `bridges.toml`; removed keywords become comments. Files keep their names. The list
    at the end is left to you.

    Either all files are replaced or none. Keep the project under version control nevertheless.

    With `--dry-run` the diff goes to stdout, and the report to stderr. The exit code is 0 if nothing is left to change,
    1 if something is, and 2 if the upgrade failed.

    Examples:

    `mcp-bindgen upgrade weather --to 2026-07-28`

    `mcp-bindgen upgrade weather --to draft` gives the project its own bindings of an imported draft.

    `mcp-bindgen upgrade weather --add 2026-07-28` adds a revision.

    `mcp-bindgen upgrade . --replace 2025-06-18 --to 2025-11-25 --dry-run` shows the changes of a project with several.
    """
    if (to is None) == (add is None):
        raise BadInput("the new revision is missing", fix="give either --to or --add")
    if add is not None:
        if replaces is not None:
            raise BadInput("--add replaces no revision", fix="leave --replace out")
        _add(Project.read(project), add, force=force, dry_run=dry_run)
        return
    assert to is not None
    store, present = Store(), Project.read(project)
    old = replaced(present, replaces, to, store)
    if old is None:
        _nothing_to_do(present, to, remaining(present, store))
        return
    found = prepare(project, old, to, force=force, store=store)
    if dry_run:
        write_patch(unified_diff(found.changes))
    else:
        found.carry_out()
    lines = [*_done(found, dry_run), "", *textwrap.wrap(_era(found, store), page().width), ""]
    migration = replace(found.migration, skipped=())
    for line in lines:
        say(line, err=dry_run)
    print_report(Report(partial(document, migration), partial(record, migration)), err=dry_run)
    if not found.is_complete:
        raise typer.Exit(1)


def _add(project: Project, revision: str, *, force: bool, dry_run: bool) -> None:
    """Add a revision to a project."""
    Store().pin(revision)
    if revision in project.revisions:
        _nothing_to_do(project, revision, {})
        return
    if project.contract is None or project.kind == "client":
        say(f"{project.name} needs no change: a {project.kind} works with peers of all revisions, also of {revision}")
        if project.kind == "server":
            say("a server whose code names `revisions` speaks only these: add it there")
        say(f"to write its code or tests for {revision}: mcp-bindgen upgrade {project.folder} --to {revision}")
        return
    changes, kept = added(project, revision, force=force)
    if dry_run:
        write_patch(unified_diff(changes))
    else:
        put(project.folder, changes)
    spoken = " and ".join(sorted([*project.revisions, revision], key=order))
    say(f"{project.name}: MCP {spoken}{' (nothing is written)' if dry_run else ''}", err=dry_run)
    for name in kept:
        say(f"left       {project.generated / name} was edited; --force moves it aside", err=dry_run)
    if kept:
        raise typer.Exit(1)


def _nothing_to_do(project: Project, revision: str, left: Mapping[str, str]) -> None:
    say(f"{project.name} speaks MCP {revision} already")
    for file, other in left.items():
        say(f"{project.folder / file} still imports {naming.package(other)}; --replace {other} changes it")


def _done(found: Upgrade, dry_run: bool) -> Iterator[str]:
    """Yield a line for each changed file."""
    here = found.project.folder
    yield f"{found.project.name}: MCP {found.old} -> {found.new}{' (nothing is written)' if dry_run else ''}"
    if found.own is not None:
        yield f"added      {here / found.own.folder}, the bindings of {here / found.own.schema}"
    for file in found.migration.edited:
        yield f"migrated   {here / file}"
    if found.generated is not None:
        for line in found.generated.lines():
            yield f"generated  {line}"
    for one in found.left:
        yield f"left       {one.file} {one.reason}"
    lacking = f"left       a capability that {found.new} lacks is named in"
    for said, places in (lacking, found.capabilities), (f"mentions   {found.old} is still named in", found.mentions):
        if places:
            yield f"{said} {several([str(here / one) for one in places], _MAX_PLACES)}"


def _era(found: Upgrade, store: Store) -> str:
    """Return how the handshake and the transports change."""
    new = found.new
    match store.pin(found.old).era, store.pin(new).era:
        case "stateful", "stateless":
            return (
                f"{new} has no handshake and no sessions: each request is independent, a handler that asks the client "
                f"runs again with the answer, and peers that need a handshake are refused. {_SAME}"
            )
        case "stateless", "stateful":
            return (
                f"{new} begins with a handshake, and HTTP has sessions: a handler may ask the client meanwhile, and "
                f"peers without a handshake are refused. {_SAME}"
            )
        case _:
            return "The handshake and the transports do not change."
