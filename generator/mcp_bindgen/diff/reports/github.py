"""Render the report as annotations of a GitHub workflow: breaking changes are errors, risky ones warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.git import Commit

from ..commits import Walked
from ..finding import Comparison, Finding, Severity
from .words import IMPACTS, sentence, telling, verdict_of, walked_in_words

_COMMANDS = {Severity.BREAKING: "error", Severity.RISKY: "warning"}


def github(comparisons: Sequence[Comparison], walked: Walked | None = None) -> str:
    """Return the report as workflow commands: a notice for each verdict, how drafts were read, then findings.

    What breaks or is risky comes with the worst first.

    Harmless findings are left out: a workflow shows only the first few annotations of each kind.
    """
    lines = [line for comparison in telling(comparisons, walked) for line in _lines(comparison)]
    if walked is not None:
        lines.insert(0, command("notice", f"{walked_in_words(walked).capitalize()}.", title=walked.source))
        lines += [
            command("warning", f"Commit {_commit(one.commit)}: skipped: {printable(one.reason)}", title=walked.source)
            for one in walked.skipped
        ]
    return "".join(f"{line}\n" for line in lines)


def _commit(commit: Commit) -> str:
    return f"{commit.short} of {commit.date} ({printable(commit.subject)})"


def _lines(comparison: Comparison) -> Iterator[str]:
    revisions = f"MCP {comparison.old.revision} -> {comparison.new.revision}"
    made = [f"Commit {_commit(commit)}." for commit in comparison.commits]
    for pairing, outcome, reasons in verdict_of(comparison):
        yield command("notice", " ".join([*made, f"{pairing.capitalize()}: {outcome}.", *reasons]), title=revisions)
    for decision in comparison.decisions:
        message = f"{decision.pointer}: {decision.reason}; {decision.reading}; {decision.fix}"
        yield command("warning", printable(message), file=decision.file, title=f"{revisions}: {decision.kind}")
    for finding in sorted(comparison.findings, key=lambda finding: -finding.severity):
        if finding.severity in _COMMANDS:
            title = f"{revisions}: {finding.rule}"
            yield command(_COMMANDS[finding.severity], _message(finding), title=title)


def _message(finding: Finding) -> str:
    impacts = (
        f"Old client with new server: {IMPACTS[finding.old_client]}. "
        f"New client with old server: {IMPACTS[finding.new_client]}."
    )
    return f"{sentence(finding)}. {impacts} {finding.hint} [{finding.fingerprint}]"


def command(name: str, message: str, **properties: object) -> str:
    """Write a workflow command: `::error file=server.py,line=1::message`."""
    said = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    return f"::{name} {said}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    """`text` without what a log would obey, and what would end it: a line a message, a colon or a comma a property."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else printable(char) for char in text)
