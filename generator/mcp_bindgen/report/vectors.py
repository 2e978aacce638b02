"""Report of `vectors run`: disagreements of an implementation with the conformance vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mcp_bindgen.spec.toml import read_toml
from mcp_bindgen.vectors.run import LOSSY, Disagreement, Run, clusters

from . import document as doc
from .render import Report

COLUMNS = ("revision", "vectors", "unsupported", "false accepts", "false rejects", "lossy", "limits", "other")
"""Columns of `counts`; `limits` are disagreements about documents at the limits of JSON readers."""

_KINDS = read_toml(Path(__file__).with_suffix(".toml"))
"""Kind of disagreement -> what the implementation does."""

_GROUPS = {"false-accept": 0, "false-reject": 1, **dict.fromkeys(LOSSY, 2)}
_LIMITS, _OTHER = 3, 4


def vectors_report(run: Run) -> Report:
    """Return the report of a run: counts for each revision, and a finding for each cluster of disagreements."""
    return Report(lambda: doc.Document("vectors run", [_section(run)]), lambda: _record(run))


def counts(run: Run) -> list[tuple[str, ...]]:
    """Return a row for each revision, with the columns `COLUMNS`."""
    rows: list[tuple[str, ...]] = []
    for revision in sorted({*run.judged, *run.unsupported}):
        found = Counter(group(one) for one in run.disagreements if one.revision == revision)
        numbers = [found[number] for number in range(_OTHER + 1)]
        rows.append((revision, *map(str, (run.judged[revision], run.unsupported[revision], *numbers))))
    return rows


def group(one: Disagreement) -> int:
    """Return the number of the column that counts a disagreement: 0 for false accepts, and so on."""
    return _LIMITS if "limit" in one.vector.tags else _GROUPS.get(one.kind, _OTHER)


def summary(cluster: Sequence[Disagreement]) -> str:
    """Return a cluster as a sentence: kind, place and the first vector."""
    first = cluster[0]
    names = first.cluster
    where = f" at {doc.code(names[2])}" if names[2] else ""
    return f"{_KINDS[first.kind]}{where} ({names[1]})"


def _section(run: Run) -> doc.Section:
    unexpected = run.unexpected
    expected = len(run.disagreements) - len(unexpected)
    wrong = bool(unexpected or run.stale)
    outcome = f"{doc.plural(len(unexpected), 'disagreement')}{f', {expected} expected' if expected else ''}"
    reasons = [f"No disagreement is left for the expected {doc.code(pattern)}." for pattern in run.stale]
    blocks: list[doc.Block] = [
        doc.Verdicts([doc.Verdict("Vectors", outcome, doc.Level.ERROR if wrong else doc.Level.NOTE, reasons)]),
        doc.Table(COLUMNS, counts(run)),
        doc.Findings([_finding(members) for members in clusters(unexpected).values()]),
    ]
    return doc.Section(run.implementation.label, blocks if unexpected else blocks[:2])


def _finding(members: Sequence[Disagreement]) -> doc.Finding:
    first = members[0]
    return doc.Finding(
        rule=first.kind,
        level=doc.Level.ERROR,
        message=f"{summary(members)}: {doc.plural(len(members), 'vector')}, e.g. {doc.code(first.name)}",
        effect=first.vector.reason,
        note=f"Answer: {doc.code(first.answer[:200])}." if first.answer else "",
        place=doc.Place(f"{first.file}.json", first.pointer),
        evidence=doc.Evidence(f"{doc.code(first.file)} reads {doc.code(first.vector.sent[:300])}"),
    )


def _record(run: Run) -> object:
    return {
        "implementation": asdict(run.implementation),
        "judged": dict(run.judged),
        "unsupported": dict(run.unsupported),
        "stale": list(run.stale),
        "disagreements": [
            {
                "vector": one.name,
                "kind": one.kind,
                "pointer": one.pointer,
                "sent": one.vector.sent,
                "answer": one.answer,
                "expected": one.reason,
            }
            for one in run.disagreements
        ],
    }
