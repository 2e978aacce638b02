"""Report of `diff`: comparisons of revisions as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from mcp_bindgen.diff.finding import RULES, Area, Comparison, Finding, Impact, Outcome, Plane, Severity, Walked
from mcp_bindgen.diff.grouping import grouped, owners
from mcp_bindgen.spec import Diagnostic
from mcp_bindgen.spec.errors import several
from mcp_bindgen.spec.toml import read_toml

from . import document as doc

Places = Callable[[Comparison, Finding | Diagnostic], doc.Place]
"""Function from a finding or a diagnostic to its place in a schema file."""

WORDS = read_toml(Path(__file__).with_suffix(".toml"))
"""Words of reports."""

# The steps of `Severity` and `Outcome` are those of `doc.Level`.
OUTCOMES: Mapping[Outcome, str] = {outcome: WORDS["outcomes"][outcome.word] for outcome in Outcome}
_PAIRINGS = ("old client with new server", "new client with old server")
_VERBS = {Impact.BREAKS: ("breaks", " "), Impact.RISKY: ("risky", " for ")}
_AREAS: Mapping[Area, str] = {Area(area): title for area, title in WORDS["areas"].items()}
_OFF_WIRE: Mapping[Plane, str] = {Plane(plane): title for plane, title in WORDS["off-wire"].items()}
HEADINGS = (*_AREAS.values(), *_OFF_WIRE.values())
"""Titles of the parts of the protocol, in the order of reports."""

_NAMES_ONLY = frozenset({"definition-added", "definition-removed", "description-changed"})
"""Rules whose findings say everything with their subject."""

_PROSE_VALUES = frozenset({"deprecated", "ref-extracted", "ref-inlined"})
"""Rules whose old and new values are sentences instead of types."""

_MAX_METHODS = 3


def without_lines(comparison: Comparison, subject: Finding | Diagnostic) -> doc.Place:
    """Return a place as far as it is known without reading the schema file."""
    return doc.Place(subject.file, subject.pointer) if isinstance(subject, Diagnostic) else doc.NOWHERE


def document(
    comparisons: Sequence[Comparison],
    *,
    witness: bool = False,
    walked: Walked | None = None,
    places: Places = without_lines,
) -> doc.Document:
    """Return the report of comparisons.

    Args:
        comparisons: The comparisons, in order.
        witness: True to include the witness of each finding on the wire.
        walked: The range of commits, if the comparisons are its steps.
        places: Function from a finding to its place in a schema file.
    """
    sections = [_section(comparison, witness, places) for comparison in reported(comparisons, walked)]
    if walked is not None:
        sections.insert(0, _walk(comparisons, walked))
    elif len(comparisons) > 1:
        sections.insert(0, _steps(comparisons))
    return doc.Document("diff", sections, [severity.word for severity in Severity])


def reported(comparisons: Sequence[Comparison], walked: Walked | None) -> list[Comparison]:
    """Return the comparisons that get a section: in a range of commits, only those with findings."""
    changed = [comparison for comparison in comparisons if comparison.findings or walked is None]
    return changed or list(comparisons[:1])


def sentence(finding: Finding, quoted: Callable[[str], str] = doc.literal) -> str:
    """Return subject and rule of a finding as a sentence; `quoted` marks names and types."""
    return f"{quoted(finding.subject)} {_predicate(finding, quoted)}"


def heading_of(finding: Finding) -> str:
    """Return the title of the part of the protocol that a finding is about."""
    return _OFF_WIRE.get(finding.plane) or _AREAS[finding.area]


def words_note(comparison: Comparison) -> str:
    """Return why descriptions and deprecations were not compared; empty if they were."""
    if comparison.compares_words:
        return ""
    return "Descriptions and deprecations are not compared: one side has our words, the other those of its file."


def walk_summary(walked: Walked) -> str:
    """Return how many commits a range has, and how many of them are not in the report."""
    parts = [f"{doc.plural(walked.commits, 'commit')} touched it"]
    parts += [f"{walked.same} of them changed only words or layout"] if walked.same else []
    parts += [f"{len(walked.skipped)} of them cannot be read and were skipped"] if walked.skipped else []
    return ", ".join(parts)


def place_of(diagnostic: Diagnostic) -> str:
    """Return file and pointer of a diagnostic."""
    return f"{diagnostic.file}#{diagnostic.pointer}"


def _diagnostic(diagnostic: Diagnostic, place: doc.Place) -> doc.Finding:
    return doc.Finding(
        rule=diagnostic.kind,
        level=doc.Level.WARNING,
        message=f"{doc.prose(diagnostic.reason)}; {doc.strong(diagnostic.interpretation)}",
        fix=doc.prose(f"{diagnostic.fix[:1].upper()}{diagnostic.fix[1:]}."),
        place=place,
    )


# --- overviews of several comparisons -------------------------------------------------------------------------------


def _steps(comparisons: Sequence[Comparison]) -> doc.Section:
    rows = [
        [
            doc.literal(f"{comparison.old.revision} -> {comparison.new.revision}"),
            str(len(grouped(comparison.findings))),
            OUTCOMES[comparison.old_client.outcome],
            OUTCOMES[comparison.new_client.outcome],
        ]
        for comparison in comparisons
    ]
    first, last = comparisons[0].old.revision, comparisons[-1].new.revision
    return doc.Section(
        f"Steps of {doc.code(f'{first}..{last}')}",
        [doc.Table(["step", "changes", *(one.replace(" with", ",") for one in _PAIRINGS)], rows)],
    )


def _walk(comparisons: Sequence[Comparison], walked: Walked) -> doc.Section:
    steps = [(comparison.commits, _counts(grouped(comparison.findings)) or "-") for comparison in comparisons]
    steps += [((one.commit,), "skipped") for one in walked.skipped]
    rows = [
        [commit.short, commit.date, words, doc.code(commit.subject or "(no subject)")]
        for commits, words in steps
        for commit in commits
    ]
    skipped = [
        doc.Finding(
            "commit-skipped", doc.Level.WARNING, f"commit {one.commit.short} is skipped: {doc.code(one.reason)}"
        )
        for one in walked.skipped
    ]
    blocks: list[doc.Block] = [
        doc.Paragraph(f"{walk_summary(walked).capitalize()}."),
        doc.Table(["commit", "day", "changes", "subject"], rows),
        *([doc.Findings(skipped)] if skipped else []),
    ]
    return doc.Section(f"Changes of {doc.code(walked.source)}", blocks)


# --- one comparison -------------------------------------------------------------------------------------------------


def _section(comparison: Comparison, witness: bool, places: Places) -> doc.Section:
    title = f"MCP {doc.literal(comparison.old.revision)} → {doc.literal(comparison.new.revision)}"
    return doc.Section(title, list(_blocks(comparison, witness, places)))


def _blocks(comparison: Comparison, witness: bool, places: Places) -> Iterator[doc.Block]:
    verdicts = zip(_PAIRINGS, (comparison.old_client, comparison.new_client), strict=True)
    yield doc.Verdicts(
        [
            doc.Verdict(
                pairing.capitalize().replace(" with", ","),
                OUTCOMES[verdict.outcome],
                doc.Level(verdict.outcome),
                list(map(doc.prose, verdict.reasons)),
            )
            for pairing, verdict in verdicts
        ]
    )
    yield doc.Paragraph(" ".join(filter(None, (_summary(comparison), words_note(comparison)))))
    for commit in comparison.commits:
        yield doc.Paragraph(f"Commit {commit.short} of {commit.date}: {doc.code(commit.subject)}")
    wire = _on(comparison, Plane.WIRE)
    for severity in reversed(Severity):
        areas = groupby([one for one in wire if one.severity is severity], key=lambda one: one.area)
        blocks: list[doc.Block] = [
            doc.Section(
                _AREAS[area], [doc.Findings([_finding(one, places(comparison, one), witness) for one in members])]
            )
            for area, members in areas
        ]
        if blocks:
            yield doc.Section(WORDS["severities"][severity.word], blocks)
    for plane, title in _OFF_WIRE.items():
        blocks = list(_compact(_on(comparison, plane), lambda one: places(comparison, one)))
        if blocks:
            yield doc.Section(title, blocks)
    if comparison.diagnostics:
        diagnostics = [_diagnostic(one, places(comparison, one)) for one in comparison.diagnostics]
        yield doc.Section("How the schemas were read", [doc.Findings(diagnostics)])


def _on(comparison: Comparison, plane: Plane) -> list[Finding]:
    return [finding for finding in grouped(comparison.findings) if finding.plane is plane]


def _counts(findings: Sequence[Finding]) -> str:
    """Return how many findings break, are risky and are harmless; empty for no findings."""
    counts = Counter(finding.severity for finding in findings)
    verbs = [
        (counts[Severity.BREAKING], "breaks", "break"),
        (counts[Severity.RISKY], "is risky", "are risky"),
        (counts[Severity.INFO], "is harmless", "are harmless"),
    ]
    return ", ".join(doc.plural(count, one, many) for count, one, many in verbs if count)


def _summary(comparison: Comparison) -> str:
    if not comparison.findings:
        return "Nothing changed."
    wire, source, words = (_on(comparison, plane) for plane in Plane)
    parts = [f"{doc.plural(len(wire), 'change')} on the wire ({_counts(wire)})"] if wire else []
    parts += [f"{len(source)} in generated code only"] if source else []
    parts += [f"{len(words)} in words only"] if words else []
    return f"{', '.join(parts)}."


def _predicate(finding: Finding, quoted: Callable[[str], str]) -> str:
    return RULES[finding.rule].says.format(old=quoted(finding.old), new=quoted(finding.new))


def _finding(finding: Finding, place: doc.Place, witness: bool) -> doc.Finding:
    return doc.Finding(
        rule=finding.rule,
        level=doc.Level(finding.severity),
        message=sentence(finding, doc.code),
        effect=_effect(finding),
        note=_places(finding),
        fix=doc.prose(finding.hint),
        fingerprint=finding.fingerprint,
        place=place,
        evidence=_evidence(finding) if witness else None,
    )


def _compact(findings: Iterable[Finding], place: Callable[[Finding], doc.Place]) -> Iterator[doc.Findings]:
    """Yield a compact list for each rule, rules and findings in alphabetical order."""
    ordered = sorted(findings, key=lambda finding: (finding.rule, finding.subject))
    for rule, members in groupby(ordered, key=lambda finding: finding.rule):
        are_names = rule in _NAMES_ONLY
        quoted = doc.prose if rule in _PROSE_VALUES else doc.code
        items = [
            replace(
                _finding(finding, place(finding), witness=False),
                message=doc.code(finding.subject)
                + ("" if are_names else f" {_predicate(finding, quoted)}")
                + (f" (in {', '.join(map(doc.code, owners(finding)))})" if owners(finding) else ""),
            )
            for finding in members
        ]
        yield doc.Findings(items, rule, are_names)


def _effect(finding: Finding) -> str:
    """Return the pairings that a finding breaks or puts at risk, as a sentence; empty for none."""
    impacts = dict(zip(_PAIRINGS, (finding.old_client, finding.new_client), strict=True))
    if finding.old_client is finding.new_client:
        impacts = {"both pairings": finding.old_client}
    stated = [(*_VERBS[impact], pairing) for pairing, impact in impacts.items() if impact in _VERBS]
    words = [
        f"{doc.strong(verb if index else verb.capitalize())}{link}{pairing}"
        for index, (verb, link, pairing) in enumerate(stated)
    ]
    return f"{', '.join(words)}." if words else ""


def _places(finding: Finding) -> str:
    """Return the places that the subject of a finding does not name, with effects that differ from the whole."""
    whole = _effect(finding)
    effects = [_effect(one) for one in finding.places]
    if set(effects) <= {whole}:
        names = list(map(doc.code, owners(finding)))
    else:
        names = [
            doc.code(one.subject) + (f" ({effect[:-1].lower()})" if effect != whole else "")
            for one, effect in zip(finding.places, effects, strict=True)
        ]
    return f"In {', '.join(names)}." if names else _reached(finding)


def _reached(finding: Finding) -> str:
    """Return the methods that a finding reaches, as a sentence; empty if the subject names the only one."""
    names = list(dict.fromkeys(message.method for message in finding.reaches))
    known = not names or (finding.area is Area.METHODS) or finding.subject.endswith(f" {names[0]}")
    return "" if known else f"In {several(list(map(doc.code, names)), _MAX_METHODS)}."


def _evidence(finding: Finding) -> doc.Evidence:
    if finding.witness is None:
        return doc.Evidence(f"No witness: {doc.prose(finding.unwitnessed)}")
    old, new = finding.witness.judgements
    return doc.Evidence(f"Old {old}, new {new}", finding.witness.instance, has_value=True)
