"""Print facts and reports: colour and folded tables on a terminal, plain lines in a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_bindgen.report import Format, Page, Report, render
from mcp_bindgen.report.document import findings_of
from mcp_bindgen.report.markdown import bounded
from mcp_bindgen.report.text import table
from mcp_bindgen.spec import Diagnostic, DiagnosticContext, EffectiveSchema
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import is_object, listed, split
from mcp_bindgen.spec.transaction import save

from .terminal import console, say, write, write_report

if TYPE_CHECKING:
    from mcp_bindgen.emit import Target
    from mcp_bindgen.ir import Protocol as Revision

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as in shells."""

MARKUP: Literal["markdown"] | None = "markdown" if sys.stdout.isatty() else None
"""Layout of `--help`: boxes and colour only on a terminal."""

_MAX_SINGLE = 3
"""Maximum number of diagnostics of a kind that have a line each."""

_MAX_BODY_BYTES = 65_536
"""Maximum size of the body of an issue or a pull request on GitHub, which has as many characters."""

_MAX_SUMMARY_BYTES = 1_000_000
"""Maximum size of a report in the summary of a step; GitHub takes no more than 1 MiB."""

Columns: TypeAlias = Mapping[str, str | Callable[[Any], str]]
"""Heading -> member or attribute of a fact, or function from a fact to the text of its cell."""


# --- reports --------------------------------------------------------------------------------------------------------


def print_report(report: Report, format: Format = Format.TEXT, out: Path | None = None, *, err: bool = False) -> None:
    """Print a report, or write it to a file; the format of GitHub also writes the summary of a step."""
    text = render(report, format, page() if out is None else Page())
    if out is None:
        write_report(text, err=err)
    else:
        save(out, text, "choose another file for --out")
    if format is Format.GITHUB and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
        _append(summary, bounded(report.document(), _MAX_SUMMARY_BYTES))


def save_body(report: Report, file: Path) -> None:
    """Write a report as the body of an issue or a pull request, unless the file has it already.

    A report without findings only replaces another one. The output `changed` of a step of a workflow states whether
    the file was written; without a workflow, a line on stderr does.
    """
    document = report.document()
    text = bounded(document, _MAX_BODY_BYTES)
    before = file.read_text("utf-8", "replace").split() if file.exists() else []
    if is_changed := text.split() != before if before else any(map(any, map(findings_of, document.sections))):
        save(file, text, "choose another file for --body")
    if output := os.environ.get("GITHUB_OUTPUT"):
        _append(output, f"changed={json.dumps(is_changed)}\n")
    else:
        say(f"{file}: {'written' if is_changed else 'unchanged'}", err=True)


def _append(file: str, text: str) -> None:
    with Path(file).open("a", encoding="utf-8") as stream:
        stream.write(text)


def page() -> Page:
    """Return the page for text on stdout; a pipe has 80 columns, and its tables do not fold."""
    if not sys.stdout.isatty():
        return Page()
    target = console()
    return Page(target.width, target.color_system is not None and not target.no_color, folds_tables=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, in a pipe with one line for each row."""
    write_report("".join(f"{line}\n" for line in table(columns, list(rows), page())))


def print_facts(facts: Iterable[Any], columns: Columns) -> None:
    """Print JSON objects or other facts as a table."""

    def cell(fact: Any, column: str | Callable[[Any], str]) -> str:
        if not isinstance(column, str):
            return column(fact)
        return _cell(fact[column] if is_object(fact) else getattr(fact, column))

    print_table(list(columns), [[cell(fact, column) for column in columns.values()] for fact in facts])


def _cell(value: Any) -> str:
    """Return a value as the text of a cell; `-` if it is empty."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    words = ", ".join(map(str, listed(value)))
    return words or "-"


def print_json(value: Any) -> None:
    """Print JSON."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


# --- warnings on stderr ---------------------------------------------------------------------------------------------


def say_corrections(*sources: EffectiveSchema) -> None:
    """Print each known mistake that was corrected in schema files; commands that import or generate from them do."""
    for correction in dict.fromkeys(correction for source in sources for correction in source.corrections):
        say(f"corrected: {correction}", err=True)


def say_diagnostics(*sources: DiagnosticContext | Revision | Target) -> None:
    """Print each diagnostic about a place where a schema file breaks a rule; many of one kind become one line."""
    kinds: dict[str, dict[Diagnostic, None]] = {}
    for one in (diagnostic for source in sources for diagnostic in source.diagnostics):
        kinds.setdefault(one.kind, {})[one] = None
    for kind, found in kinds.items():
        places = ", ".join(f"#{one.pointer}" for one in [*found][1:_MAX_SINGLE])
        more = f" ({kind}: {len(found)} places, as {places})" if len(found) > _MAX_SINGLE else ""
        for one in [*found][: 1 if more else None]:
            say(printable(f"warning: {one}{more}"), err=True)


def say_gaps(*targets: Target) -> None:
    """Print the parts that packages lack, because their inputs do."""
    for gap in (gap for target in targets for gap in target.gaps):
        say(gap, err=True)


def say_copies(*sources: EffectiveSchema) -> None:
    """Print the definitions of extensions that share a name with core and differ from it."""
    for extension in (extension for source in sources for extension in source.extensions):
        for copy in extension.copies:
            say(f"warning: {extension.file}: {copy}", err=True)


def diagnostics_about(protocol: Revision, definition: str) -> list[dict[str, str]]:
    """Return the diagnostics about a definition as JSON."""
    return [asdict(diagnostic) for diagnostic in protocol.diagnostics if split(diagnostic.pointer)[1:2] == [definition]]
