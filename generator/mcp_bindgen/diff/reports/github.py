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
        yield _command("notice", revisions, " ".join([f"{pairing.capitalize()}: {outcome}.", *reasons]))
    for finding in sorted(comparison.findings, key=lambda finding: -finding.severity):
        if finding.severity in _COMMANDS:
            yield _command(_COMMANDS[finding.severity], f"{revisions}: {finding.rule}", _message(finding))


def _message(finding: Finding) -> str:
    impacts = (
        f"Old client with new server: {IMPACTS[finding.old_client]}. "
        f"New client with old server: {IMPACTS[finding.new_client]}."
    )
    return f"{sentence(finding)}. {impacts} {finding.hint} [{finding.fingerprint}]"


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Return `text` as the data of a workflow command, which ends with its line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return `text` as a property of a workflow command, which ends with a comma or a colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
