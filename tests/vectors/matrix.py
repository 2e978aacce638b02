"""Run all testees on all vectors, and write docs/reference/vectors-matrix.md: `python -m tests.vectors.matrix`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcp_bindgen.report.vectors import COLUMNS, counts, group, summary
from mcp_bindgen.spec import Store
from mcp_bindgen.vectors import VectorFile, vector_files
from mcp_bindgen.vectors.run import Run, clusters, run
from mcp_bindgen.vectors.testee import Testee
from tests.harness.commands import ROOT
from tests.vectors.testees import PROGRAMS, Program

PAGE = ROOT / "docs" / "reference" / "vectors-matrix.md"
LONGEST = 160
"""Maximum number of characters of a document in the table."""

COMPARED = 3
"""Columns of the table of rules: false accepts, false rejects and lossy documents."""


def run_program(program: Program, files: Sequence[VectorFile]) -> Run:
    """Run vectors on a testee."""
    with Testee(program.command(), timeout=60.0) as testee:  # a busy machine must not change the page
        return run(files, testee)


def page(runs: Mapping[Program, Run]) -> str:
    """Return the page with its present introduction."""
    introduction = PAGE.read_text("utf-8").partition("## Implementations")[0]
    lines = [introduction.rstrip("\n"), "", *_packages(runs), *_revisions(runs), *_rules(runs), *_clusters(runs)]
    return "\n".join(lines).rstrip() + "\n"


def line(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


def _packages(runs: Mapping[Program, Run]) -> Iterator[str]:
    yield "## Implementations\n"
    rows: list[tuple[str, ...]] = []
    for program, found in runs.items():
        one = found.implementation
        rows.append(
            (program.key, f"`{one.name}`", one.version, one.language, f"{one.revisions[0]} to {one.revisions[-1]}")
        )
    yield from _table(("name here", "package", "version", "language", "revisions"), rows)


def revision_rows(program: Program, found: Run) -> list[tuple[str, ...]]:
    """Return the rows of an implementation in the table of revisions."""
    return [(program.key, *row) for row in counts(found) if found.judged[row[0]]]


def _revisions(runs: Mapping[Program, Run]) -> Iterator[str]:
    yield "## By revision\n"
    rows = [row for program, found in runs.items() for row in revision_rows(program, found)]
    yield from _table(("name", *COLUMNS), rows)


def _rules(runs: Mapping[Program, Run]) -> Iterator[str]:
    yield "## By rule\n"
    yield "False accepts, false rejects and lossy documents of each rule, over all revisions.\n"
    tallies = [Counter((one.vector.rule, group(one)) for one in found.disagreements) for found in runs.values()]
    rows = [
        (f"`{rule}`", *(" / ".join(str(tally[rule, column]) for column in range(COMPARED)) for tally in tallies))
        for rule in sorted({rule for tally in tallies for rule, column in tally if column < COMPARED})
    ]
    yield from _table(("rule", *(program.key for program in runs)), rows)


def _clusters(runs: Mapping[Program, Run]) -> Iterator[str]:
    yield "## Minimal documents\n"
    yield "One small document for each cluster of disagreements, with the number of vectors of each implementation.\n"
    found = {program: clusters(one.disagreements) for program, one in runs.items()}
    keys = {key: None for each in found.values() for key in each}
    rows: list[tuple[int, tuple[str, ...]]] = []
    for key in keys:
        parts = {program: each[key] for program, each in found.items() if key in each}
        first = min((members[0] for members in parts.values()), key=lambda one: (len(one.vector.sent), one.name))
        sent = first.vector.sent
        shown = sent if len(sent) <= LONGEST else f"{sent[:LONGEST]}..."
        where = ", ".join(f"{program.key} ({len(members)})" for program, members in parts.items())
        finding = summary([first]).replace("\0", "`")
        rows.append((-sum(map(len, parts.values())), (finding, f"`{shown}`", f"`{first.file}`", where)))
    yield from _table(("finding", "document", "definition", "implementations"), [row for _, row in sorted(rows)])


def main() -> None:
    """Write the page."""
    files = list(vector_files(Store()))
    runs: dict[Program, Run] = {}
    for program in PROGRAMS:
        runs[program] = run_program(program, files)
        print(f"{program.key}: {len(runs[program].disagreements)} disagreements", file=sys.stderr)
    PAGE.write_text(page(runs), "utf-8")


if __name__ == "__main__":
    main()
