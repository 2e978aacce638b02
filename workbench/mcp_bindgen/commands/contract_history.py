"""`mcp-bindgen contract history`: what each version of a server means to the callers of the version before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.cli.options import Out, ReportFormat
from mcp_bindgen.cli.output import print_report
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.report import Format, Report
from mcp_bindgen.spec import BadInput

from .drift_options import CallersName, Failure, callers_of, fails
from .live import Connection, offers
from .servers import public

_VERSIONS = re.compile(r"(?P<mark>@|==|:)(?P<versions>[\w.+-]+(?:,[\w.+-]+)+)(?=[\s\"']|$)", re.ASCII)


def history(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|SERVER@V1,V2",
            help="Folder of contracts VERSION.json or NAME-VERSION.json, or COMMAND of a server whose package names "
            "several versions.",
        ),
    ],
    format: ReportFormat = Format.TEXT,
    out: Out = None,
    callers: CallersName = None,
    fail_on: Failure = "never",
    *,
    connection: Connection,
) -> None:
    """Report what each version of a server means to the callers of the version before.

    The table counts entries by verdict, and those with changed texts. The breaking changes of each step follow, with
    values that prove them. The files of a folder are in the order of their versions; those of a command as given.
    Exit code 0 unless `--fail-on` says otherwise.

    Examples:

    `mcp-bindgen contract history contracts --format html --out history.html`

    `mcp-bindgen contract history 'npx -y @modelcontextprotocol/server-filesystem@2025.8.21,2026.7.4 .'`

    `mcp-bindgen contract history contracts --callers strict --fail-on breaking`
    """
    from mcp_bindgen.contract.comparison import history as report  # the validator takes time to load

    profile = callers_of(callers)
    if Path(source).is_dir():
        contracts, others = report.recorded(Path(source))
        for file in others:
            say(f"warning: {file} is left out: its name has no version", err=True)
    else:
        contracts = [
            report.Recorded(name, version, offers(words, connection)) for name, version, words in _versions(source)
        ]
    found = report.histories(contracts, profile)
    print_report(Report(partial(report.document, found, profile), partial(report.record, found, profile)), format, out)
    if fails(fail_on, (change for one in found for step in one.steps for change in step.changes)):
        raise typer.Exit(1)


def _versions(words: str) -> Iterator[tuple[str, str, str]]:
    """Yield name of the server, version, and the words with this version."""
    match = _VERSIONS.search(words)
    if match is None:
        raise BadInput(
            f"{public(words)!r} is no folder, and no command that names several versions of a package",
            fix="as in: 'npx -y PACKAGE@1.0.0,1.1.0'",
        )
    name = public(words[: match.start()] + words[match.end() :])
    for version in match["versions"].split(","):
        yield name, version, f"{words[: match.start('versions')]}{version}{words[match.end() :]}"
