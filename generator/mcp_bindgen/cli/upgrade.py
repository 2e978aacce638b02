"""`mcp-bindgen upgrade`: take a scaffolded project to another revision."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcp_bindgen.diff.migration.report import text
from mcp_bindgen.protocol import naming
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.scaffold.upgrade.import_check import Interpreter
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.revisions import order
from mcp_bindgen.spec.transaction import put, unified_diff

from . import complete
from .output import page
from .terminal import say, write_patch, write_report

if TYPE_CHECKING:
    from mcp_bindgen.scaffold.upgrade.project_upgrade import Upgrade

_HERE = Path(sys.executable)
_SEVERAL = 6
"""How many places of one kind are listed."""

_SAME = "The transports, and how they are started, stay as they are."


def upgrade(
    project: Annotated[Path, typer.Argument(help="The folder of the project.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="REVISION", help="The revision to speak from now on.", autocompletion=complete.revisions
        ),
    ] = None,
    add: Annotated[
        str | None,
        typer.Option(
            "--add",
            metavar="REVISION",
            help="A revision to speak beside the others, for a server with a contract.",
            autocompletion=complete.revisions,
        ),
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="REVISION", help="The one to replace; the oldest by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Move generated files aside that somebody edited.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print a unified diff, the rest to stderr, and write nothing.")
    ] = False,
    python: Annotated[
        Path, typer.Option("--python", metavar="FILE", help="The Python to import with.", show_default="this one")
    ] = _HERE,
) -> None:
    """Take a scaffolded project to another revision, newer or older.

    Generated files are made anew; those that somebody edited are left. In your own files only the name of the bindings
    changes where they are imported and used, `v2025_11_25` for example; files keep their names. Then it lists what you
    have to change: what your code uses that the new revision has not, or has otherwise.

    The project stays importable: everything is tried in a copy beside it, where its modules and tests are imported, by
    another Python if you say so. A file that could not be imported with the new bindings keeps the old ones and is
    listed. All files are put in place, or none. Have the project under version control all the same.

    The exit code is 0 when nothing is left to change, 1 when something is, and 2 when nothing could be done.

    Examples:

    `mcp-bindgen upgrade weather --to 2026-07-28`

    `mcp-bindgen upgrade weather --add 2026-07-28` speaks that beside what it spoke before.

    `mcp-bindgen upgrade . --from 2025-06-18 --to 2025-11-25 --dry-run` shows the changes of a project with several.
    """
    if (to is None) == (add is None):
        raise BadInput("a project goes --to another revision, or speaks one more", fix="give --to, or --add")
    if add is not None:
        if from_ is not None:
            raise BadInput("--add replaces nothing", fix="leave --from out")
        _add(Project.read(project), add, force=force, dry_run=dry_run)
        return
    assert to is not None
    from mcp_bindgen.scaffold.upgrade.project_upgrade import remaining, replaced  # libcst takes time to load
    from mcp_bindgen.scaffold.upgrade.project_upgrade import upgrade as prepare

    store, mine = Store(), Project.read(project)
    old = replaced(mine, from_, to, store)
    if old is None:
        _nothing_to_do(mine, to, remaining(mine, store))
        return
    found = prepare(project, old, to, interpreter=Interpreter(python), force=force, store=store)
    if dry_run:
        write_patch(unified_diff(found.changes))
    else:
        found.carry_out()
    width, colour = page()
    lines = [*_done(found, python, dry_run), "", *textwrap.wrap(_era(found, store), width), ""]
    report = text(replace(found.migration, imports=()), width=width, colour=colour)
    for line in lines:
        say(line, err=dry_run)
    write_report(report, err=dry_run)
    if not found.is_complete:
        raise typer.Exit(1)


def _add(project: Project, revision: str, *, force: bool, dry_run: bool) -> None:
    """Have a project speak one more revision."""
    from mcp_bindgen.scaffold.upgrade.addition import added

    if revision in project.revisions:
        _nothing_to_do(project, revision, {})
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
        say(f"{project.folder / file} still imports {naming.package(other)}; --from {other} moves it")


def _done(found: Upgrade, python: Path, dry_run: bool) -> Iterator[str]:
    """Report what was done, a line for each file."""
    here = found.project.folder
    yield f"{found.project.name}: MCP {found.old} -> {found.new}{' (nothing is written)' if dry_run else ''}"
    for file, lines in found.moved.items():
        yield f"moved      {here / file}:{_several(map(str, lines))}"
    if found.generated is not None:
        for line in replace(found.generated, folder=here / found.generated.folder).lines():
            yield f"generated  {line}"
    for one in found.left:
        yield f"left       {here / one.file}:{one.line} {one.reason}"
    if found.left:
        again = f"mcp-bindgen upgrade {here} --from {found.old} --to {found.new}"
        yield f"           These keep {naming.package(found.old)}. Change what is listed below, then: {again}"
    for file, failure in found.broken.items():
        yield f"unknown    {here / file} could not be imported before: {failure.reason}"
    if found.broken and python == _HERE:
        yield "           If they need another Python, give it with --python."
    if found.mentions:
        yield f"mentions   {found.old} is still named in {_several(str(here / one) for one in found.mentions)}"


def _several(places: Iterator[str]) -> str:
    listed = list(places)
    more = f" and {len(listed) - _SEVERAL} more" if len(listed) > _SEVERAL else ""
    return ", ".join(listed[:_SEVERAL]) + more


def _era(found: Upgrade, store: Store) -> str:
    """Report what becomes of the handshake and the transports."""
    new = found.new
    match store.pin(found.old).era, store.pin(new).era:
        case "stateful", "stateless":
            return (
                f"{new} has no handshake and no sessions: each request stands alone, a handler that asks the client "
                f"runs again with the answer, and peers that only know a handshake are refused. {_SAME}"
            )
        case "stateless", "stateful":
            return (
                f"{new} begins with a handshake, and HTTP has sessions: a handler may ask the client in between, and "
                f"peers that know no handshake are refused. {_SAME}"
            )
        case _:
            return "The handshake and the transports stay as they are."
