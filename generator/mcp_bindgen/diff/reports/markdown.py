"""Render the report as a section of a changelog, in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from ..commits import Walked
from ..finding import Comparison, Finding, Impact, Plane, Severity
from .words import (
    IMPACTS,
    about_words,
    by_rule,
    grouped,
    on,
    place,
    plural,
    reached,
    said,
    sentence,
    severities,
    telling,
    verdict_of,
    walked_in_words,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")
_LIVE = re.compile(r"@|:(?=//)|\bwww(?=\.)|#(?=\d)")
"""What makes sites like GitHub mention somebody or link to something; they see through a backslash."""

_CODE = re.compile(r"(`[^`]*`)")
_BARE = frozenset({"definition-added", "definition-removed", "description-changed"})
"""Rules of which the subject says all."""

_WORDY = frozenset({"deprecated", "ref-extracted", "ref-inlined"})
"""Rules whose old and new are sentences rather than types."""

_LEVELS = {
    Severity.BREAKING: "Breaking",
    Severity.RISKY: "Risky",
    Severity.INFO: "Harmless",
}


def markdown(comparisons: Sequence[Comparison], *, witness: bool = False, walked: Walked | None = None) -> str:
    """Return the report as Markdown: a section for each comparison.

    Args:
        comparisons: What to report.
        witness: Whether to show the witnesses.
        walked: The range of commits that they are from, if they are.
    """
    sections = [_section(comparison, witness) for comparison in telling(comparisons, walked)]
    if walked is not None:
        sections.insert(0, _walk(comparisons, walked))
    return "\n\n".join("\n".join(section).rstrip() for section in sections) + "\n"


def _walk(comparisons: Sequence[Comparison], walked: Walked) -> Iterator[str]:
    yield f"# Changes of {code(walked.source)}"
    yield ""
    yield f"{walked_in_words(walked).capitalize()}."
    rows = [(comparison.commits, severities(comparison.findings) or "-") for comparison in comparisons]
    rows += [((one.commit,), f"skipped: {_cell(one.reason)}") for one in walked.skipped]
    yield from ("", "| commit | day | subject | changes |", "| --- | --- | --- | --- |")
    for commits, words in rows:
        for commit in commits:
            yield f"| {commit.short} | {commit.date} | {_cell(commit.subject)} | {words} |"


def _cell(text: str) -> str:
    """Return words of others for a cell of a table: as code, so that they mention nobody and link to nothing."""
    return code(text.replace("|", "\u00a6"))


def _section(comparison: Comparison, witness: bool) -> Iterator[str]:
    yield f"# MCP {_plain(comparison.old.revision)} → {_plain(comparison.new.revision)}"
    yield ""
    for pairing, outcome, reasons in verdict_of(comparison):
        yield f"- **{pairing.capitalize()}: {outcome}.** {' '.join(_prose(reason) for reason in reasons)}".rstrip()
    yield ""
    yield " ".join(filter(None, (_counts(comparison), _plain(about_words(comparison)))))
    for commit in comparison.commits:
        yield from ("", f"Commit {commit.short} of {commit.date}: {code(commit.subject)}")
    wire = on(comparison, Plane.WIRE)
    for severity in reversed(Severity):
        found = [finding for finding in wire if finding.severity is severity]
        if found:
            yield from ("", f"## {_LEVELS[severity]}")
        for group, findings in grouped(found):
            yield from ("", f"### {_group(group)}", "")
            for finding in findings:
                yield from _finding(finding, witness)
    yield from _others(comparison, Plane.SOURCE, "Only in generated code")
    yield from _others(comparison, Plane.DOC, "Only in words")
    if comparison.decisions:
        yield from ("", "## How the schemas were read", "")
    for decision in comparison.decisions:
        yield f"- {code(place(decision))}: {_plain(decision.reason)}; **{_plain(decision.reading)}**."
        yield f"  {_plain(decision.fix[:1].upper() + decision.fix[1:])}."


def _counts(comparison: Comparison) -> str:
    if not comparison.findings:
        return "Nothing changed."
    wire, source, doc = (on(comparison, plane) for plane in Plane)
    parts = [f"{plural(len(wire), 'change')} on the wire ({severities(wire)})"] if wire else []
    parts += [f"{len(source)} in generated code only"] if source else []
    parts += [f"{len(doc)} in words only"] if doc else []
    return f"{', '.join(parts)}."


def _group(name: str) -> str:
    return "Errors" if name == "errors" else code(name)


def _finding(finding: Finding, witness: bool) -> Iterator[str]:
    yield f"- {sentence(finding, code)}.{_impact(finding)}"
    names = reached(finding, code)
    yield f"  {f'In {names}. ' if names else ''}{_prose(finding.hint)}"
    if witness:
        yield from _witness(finding)
    yield f"  <sub>{finding.rule} {finding.fingerprint}</sub>"


def _impact(finding: Finding) -> str:
    old, new = finding.old_client, finding.new_client
    if max(old, new) < Impact.RISKY:
        return ""
    parts = [
        f"**{IMPACTS[impact]}** {pairing}" if impact is Impact.BREAKS else f"**{IMPACTS[impact]}** for {pairing}"
        for impact, pairing in ((old, "old client with new server"), (new, "new client with old server"))
        if impact >= Impact.RISKY
    ]
    if len(parts) == 2 and old is new:
        parts = [f"**{IMPACTS[old]}** {'both pairings' if old is Impact.BREAKS else 'for both pairings'}"]
    words = ", ".join(parts)
    return f" {words[:2]}{words[2].upper()}{words[3:]}."


def _others(comparison: Comparison, plane: Plane, title: str) -> Iterator[str]:
    found = on(comparison, plane)
    if found:
        yield from ("", f"## {title}")
    for rule, findings in by_rule(found):
        yield from ("", f"**{rule}** ({len(findings)}):")
        if rule in _BARE:
            yield ", ".join(code(finding.subject) for finding in findings) + "."
        else:
            yield ""
            quoted = _prose if rule in _WORDY else code
            yield from (f"- {code(finding.subject)} {said(finding, quoted)}." for finding in findings)


def _witness(finding: Finding) -> Iterator[str]:
    if finding.witness is None:
        yield f"  No witness: {_prose(finding.unwitnessed)}."
        return
    old, new = finding.witness.judgements
    yield f"  Old {old}, new {new}:"
    yield ""
    yield "  ```json"
    yield from (f"  {line}" for line in json.dumps(finding.witness.instance, ensure_ascii=False, indent=2).split("\n"))
    yield "  ```"
    yield ""


def code(text: str) -> str:
    """Return `text` as code, whatever it holds."""
    flat = _line(text)
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if len(ticks) > 1 else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}" if flat else ""


def _plain(text: str) -> str:
    """Return `text` without Markdown of its own."""
    return _inert(_line(text))


def _prose(text: str) -> str:
    """Return `text` in which code in backticks stays code, and everything else is plain."""
    parts = _CODE.split(_line(text))
    return "".join(part if index % 2 else _inert(part) for index, part in enumerate(parts))


def _inert(text: str) -> str:
    """Return a line in which nothing is Markdown, a mention or a link; a space without width breaks the latter."""
    return _LIVE.sub(r"\g<0>&#8203;", _SPECIAL.sub(r"\\\1", text))


def _line(text: str) -> str:
    """Return `text` in one line, without characters that cannot be seen."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())
