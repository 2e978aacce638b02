"""`mcp-bindgen generate` and `check`: generate bindings from schemas, and compare them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import typer

from mcp_bindgen.emit import DEFAULT, Request, Target, drift, update, wanted
from mcp_bindgen.report import Format
from mcp_bindgen.report.check import Drift, drift_report
from mcp_bindgen.spec.errors import near

from . import options
from .options import Force, ReportFormat
from .output import print_report, say_copies, say_corrections, say_diagnostics, say_gaps
from .terminal import StatusLine, say, write


@dataclass(frozen=True)
class Packages:
    """Packages of bindings: schemas, their place, and their language."""

    revisions: options.Revisions = None
    out: options.Out = None
    package: options.Package = None
    schema: options.SchemaFile = None
    revision: options.Revision = None
    extension: options.Extension = None
    semantics: options.Semantics = None
    only: options.Only = None
    language: options.Language = DEFAULT
    templates: options.Templates = None
    folder: options.Folder = None
    strict: options.Strict = False

    def targets(self) -> list[Target]:
        """Return the packages, after a warning for each copy of a core definition that differs."""
        request = Request(
            revisions=tuple(self.revisions or ()),
            out=self.out,
            package=self.package,
            schema=self.schema,
            name=self.revision,
            extensions=tuple(self.extension or ()),
            semantics=self.semantics,
            folder=self.folder,
            strict=self.strict,
            only=options.names(self.only),
            language=self.language,
            templates=self.templates,
        )
        targets = wanted(request)
        say_copies(*(source for target in targets for source in target.sources))
        return targets


def generate(packages: Packages, force: Force = False) -> None:
    """Generate bindings: one line for each revision.

    Without arguments, the packages of the project's `mcp-bindgen.toml` are generated.

    Examples:

    `mcp-bindgen generate` without a project regenerates all revisions of this checkout, else those in your own folder.

    `mcp-bindgen generate 2025-11-25 --out src --package acme.mcp` writes bindings of your own to src/acme/mcp/.

    `mcp-bindgen generate --schema draft.json --revision draft --out src --package acme_draft` takes any schema file.

    `mcp-bindgen generate 2026-07-28 --extension tasks` regenerates the bindings of an extension of that revision.

    `mcp-bindgen generate 2026-07-28 --extension jobs.json --semantics jobs.toml --out src --package acme_jobs`

    `mcp-bindgen generate --schema git:../spec@main:schema/draft/schema.json --revision draft --out src --package acme`
    """
    targets = packages.targets()
    for target in targets:
        start = time.perf_counter()
        with StatusLine(f"generating {target.name}"):
            say_diagnostics(target)
            made = update(target, force=force)
            for path, text in target.stale_pages.items():
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")
        if made.changed:
            say_corrections(*target.sources)
        files = f"{made.files} file{'' if made.files == 1 else 's'}"
        place = f"{near(target.folder)}{'' if made.changed else ' (unchanged)'}"
        say(f"{target.name}  {target.summary}  {files}  {time.perf_counter() - start:.1f} s  {place}")
        say_gaps(target)


def check(packages: Packages, format: ReportFormat = Format.TEXT) -> None:
    """Compare generated packages with their schemas; the exit code is 1 if they differ.

    Examples:

    `mcp-bindgen check` compares the packages of the project's `mcp-bindgen.toml`, else all revisions of this checkout.

    `mcp-bindgen check 2025-11-25 --out src --package acme.mcp` compares bindings of your own.

    `mcp-bindgen check --format github` annotates the files that differ.
    """
    targets = packages.targets()
    drifts: list[Drift] = []
    shared = {name for name, count in Counter(target.name for target in targets).items() if count > 1}

    for target in targets:
        with StatusLine(f"checking {target.name}"):
            say_diagnostics(target)
            pages = (f"{near(path)} is out of date\n" for path in target.stale_pages)
            difference = "".join([drift(target.folder, target.render()), *pages])
        say_gaps(target)
        drifts.append(Drift(target.name, target.folder, target.options.command, difference))
        if format is Format.TEXT:
            write(difference)
            place = f"  {near(target.folder)}" if target.name in shared else ""
            say(f"{target.name}  {'differs' if difference else 'in sync'}{place}")
    if format is not Format.TEXT:
        print_report(drift_report(drifts), format)
    commands = [one.command for one in drifts if one.difference]
    if commands:
        say(f"out of sync; run: {' && '.join(commands)}", err=True)
    if commands or any(target.has_errors for target in targets):
        raise typer.Exit(1)
