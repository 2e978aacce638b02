"""Render the report as annotations of a GitHub workflow: breaking changes are errors, risky ones warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..finding import Comparison, Finding, Severity
from .words import IMPACTS, sentence, verdict_of

_COMMANDS = {Severity.BREAKING: "error", Severity.RISKY: "warning"}


def github(comparisons: Sequence[Comparison]) -> str:
    """Return the report as workflow commands: a notice for each verdict, then what breaks or is risky, the worst first.

    Harmless findings are left out: a workflow shows only the first few annotations of each kind.
    """
    return "".join(f"{line}\n" for comparison in comparisons for line in _lines(comparison))


def _lines(comparison: Comparison) -> Iterator[str]:
    revisions = f"MCP {comparison.old.revision} -> {comparison.new.revision}"
    for pairing, outcome, reasons in verdict_of(comparison):
        yield command("notice", " ".join([f"{pairing.capitalize()}: {outcome}.", *reasons]), title=revisions)
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
    """`text` without what would end it: a line ends a message, a colon or a comma ends a property."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else char for char in text)
