"""`mcp-bindgen check`: compare bindings with their schemas."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from mcp_bindgen.emit import drift
from mcp_bindgen.report import Format
from mcp_bindgen.report.drift import Drift, drift_report
from mcp_bindgen.spec.errors import near

from .options import ReportFormat
from .output import print_report, say_decisions, say_missing
from .packages import Packages
from .terminal import StatusLine, say, write


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
            say_decisions(target)
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
