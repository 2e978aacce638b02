"""`mcp-bindgen generate` and `check`: generate bindings from schemas, and compare them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import typer

from mcp_bindgen.emit import DEFAULT, Bridges, Request, Target, Update, drift, update, wanted
from mcp_bindgen.report import Format
from mcp_bindgen.report.check import Drift, drift_report
from mcp_bindgen.spec.errors import near

from . import options
from .options import Force, ReportFormat
from .output import print_report, say_copies, say_corrections, say_diagnostics, say_incomplete, say_missing
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
        say_copies(*(target.source for target in targets))
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
        if made.changed:
            say_corrections(target.source)
        say(_line(target, made, time.perf_counter() - start))
        say_incomplete(target.protocol)
    for steps in targets[0].emitter.bridges_of(targets):
        start = time.perf_counter()
        with StatusLine("generating bridges"):
            made = update(steps)
            steps.write_page()
        say_missing(steps)
        say(_bridges_line(steps, made, time.perf_counter() - start))


def _line(target: Target, made: Update, seconds: float) -> str:
    definitions, methods = target.counts
    return f"{target.name}  {definitions:3} definitions  {methods:2} methods  {_made(made, seconds, target.folder)}"


def _bridges_line(steps: Bridges, made: Update, seconds: float) -> str:
    rules = sum(place.rule is not None for plan in steps.plans for place in plan.differences)
    return f"bridges  {len(steps.plans)} steps  {rules} differences with a rule  {_made(made, seconds, steps.folder)}"


def _made(made: Update, seconds: float, folder: Path) -> str:
    files = f"{made.files} file{'' if made.files == 1 else 's'}"
    return f"{files}  {seconds:.1f} s  {near(folder)}{'' if made.changed else ' (unchanged)'}"


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

    def add(name: str, folder: Path, command: str, difference: str, verb: str) -> None:
        drifts.append(Drift(name, folder, command, difference))
        if format is Format.TEXT:
            write(difference)
            place = f"  {near(folder)}" if name in shared else ""
            say(f"{name}  {verb if difference else 'in sync'}{place}")

    for target in targets:
        with StatusLine(f"checking {target.name}"):
            say_diagnostics(target)
            difference = drift(target.folder, target.render())
        add(target.name, target.folder, target.command, difference, "differs")
    wrong = False
    for steps in targets[0].emitter.bridges_of(targets):
        with StatusLine("checking bridges"):
            difference = drift(steps.folder, steps.render())
            if not steps.is_page_current:
                difference += "docs/explanation/bridges.md is out of date\n"
        wrong = say_missing(steps) or wrong
        add("bridges", steps.folder, steps.command, difference, "differ")
    if format is not Format.TEXT:
        print_report(drift_report(drifts), format)
    commands = [one.command for one in drifts if one.difference]
    if commands:
        say(f"out of sync; run: {' && '.join(commands)}", err=True)
    if commands or wrong:
        raise typer.Exit(1)
