"""Run the conversations with all peers and write docs/reference/interop.md: `python -m tests.interop.matrix`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import anyio

from tests.interop.peers import NODE, PYTHON, TRANSPORTS, Peer, cases
from tests.interop.processes import MODULES
from tests.interop.report import FEATURES, HTTP_ONLY, Report

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "interop.md"
EVERYBODY = (*PYTHON, *NODE)
NAMES = {"stdio": "stdio", "sse": "HTTP+SSE", "http": "Streamable HTTP"}
SIDES = {"client": "Our clients, their servers", "server": "Our servers, their clients"}

INTRODUCTION = """\
# Interoperability

Conversations with foreign implementations of MCP. `python -m tests.interop.matrix` runs all
conversations and writes this page. `make test-all` runs every revision and every transport of each peer, though not
every combination, and fails when this page is out of date; `pytest -m slow tests/interop` runs all.

A number counts the features that a conversation tried with success; a feature may be many checks. *n/a* counts features
of the revision that the peer itself does not have; the reasons are below. Messages of our side are validated against
the schema of the revision.

- Over stdio, a foreign client that begins with a handshake asks for its newest revision, and our server, which has one
  of those only, answers with that. A client of 2026-07-28 finds a server of all revisions, and asks which it speaks.
- Over HTTP, our server offers all revisions at one address, and clients of all of them use it at the same time. Only
  the Inspector, which cannot ask for an old revision, gets a server with one.
- Streams break while a call runs ("resuming"): the client comes back, and nothing is lost or comes twice.
"""

Row = tuple[str, ...]


def installed(peer: Peer) -> str:
    """Return the package of a peer with the installed version."""
    if peer in PYTHON:
        return f"`{peer.package}` {version(peer.package)}"
    found: str = json.loads((MODULES / peer.package / "package.json").read_text("utf-8"))["version"]
    return f"`{peer.package}` {found}"


def cell(report: Report) -> str:
    """Return the outcome of a conversation, as a cell of a table."""
    if report.failures:
        return f"FAILED: {', '.join(report.failures)}"
    if not report.works:
        return "n/a"
    return f"{len(report.works)}, {len(report.absent)} n/a" if report.absent else str(len(report.works))


def verify(peer: Peer, over: str, revisions: Sequence[str]) -> None:
    """Check that every step of conversations over one transport succeeds, and that the page has the outcome."""
    reports = anyio.run(peer.reports, over, revisions)
    for report in reports:
        report.check()
    page = PAGE.read_text("utf-8")
    if _line((peer.name, installed(peer))) in page:  # otherwise the page is about another version
        table = page.partition(SIDES[peer.ours])[2].partition(f"### {NAMES[over]}\n")[2].partition("\n#")[0]
        (row,) = [line for line in table.splitlines() if line.startswith(f"| {peer.name} |")]
        written = dict(zip(TRANSPORTS[over], row.strip("| ").split(" | ")[1:], strict=True))
        for report in reports:
            assert cell(report) == written[report.revision], "python -m tests.interop.matrix"


async def main() -> int:
    """Write the page; return 1 if a conversation failed, otherwise 0."""
    reports: list[Report] = []
    for peer, over in cases(EVERYBODY):
        reports += (found := await peer.reports(over))
        print(f"{peer.name}, {over}: {' | '.join(map(cell, found))}", file=sys.stderr)
    parts = [INTRODUCTION, *_peers(), *_results(reports), *_features(), *_absent(reports)]
    PAGE.write_text("\n".join(parts), "utf-8")
    return int(any(report.failures for report in reports))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(head: Row, rows: Iterable[Row]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows), ""]


def _peers() -> list[str]:
    return ["## Peers", "", *_table(("peer", "package"), [(peer.name, installed(peer)) for peer in EVERYBODY])]


def _results(reports: list[Report]) -> Iterator[str]:
    for side, title in SIDES.items():
        yield from (f"## {title}", "")
        for over, revisions in TRANSPORTS.items():
            peers = [peer for peer in EVERYBODY if peer.ours == side and over not in peer.absent]
            rows = [(peer.name, *map(cell, _of(peer, reports, over))) for peer in peers]
            yield from (f"### {NAMES[over]}", "", *_table(("peer", *revisions), rows))


def _of(peer: Peer, reports: list[Report], over: str | None = None) -> list[Report]:
    """Return the reports about a peer."""
    return [each for each in reports if each.peer == peer.name and over in (each.transport, None)]


def _features() -> list[str]:
    lines = ["## Features", ""]
    spans = dict.fromkeys(FEATURES.values())
    for first, last in spans:
        found = [name + " (HTTP only)" * (name in HTTP_ONLY) for name in FEATURES if FEATURES[name] == (first, last)]
        lines.append(f"- {first} to {last}: {', '.join(found)}".replace(f"{last} to {last}", last))
    return [*lines, ""]


def _absent(reports: list[Report]) -> list[str]:
    """Return the table of unsupported features, each reason once."""
    rows: list[Row] = []
    for peer in EVERYBODY:
        mine = _of(peer, reports)
        for reason in dict.fromkeys(peer.absent.values()):
            rows.append((peer.name, "all", " and ".join(NAMES[over] for over in peer.absent), reason))
        silent = [each for each in mine if not each.works]
        for reason, places in _reasons({each: next(iter(each.absent.values())) for each in silent}):
            rows.append((peer.name, "all", _where(places, mine), reason))
        for feature in FEATURES:
            able = [each for each in mine if each.works and each.has(feature)]
            for reason, places in _reasons({each: each.absent[feature] for each in able if feature in each.absent}):
                rows.append((peer.name, feature, _where(places, able), reason))
    return ["## Features that are not applicable", "", *_table(("peer", "feature", "where", "why"), rows)]


def _reasons(why: dict[Report, str]) -> list[tuple[str, list[Report]]]:
    return [(reason, [each for each in why if why[each] == reason]) for reason in dict.fromkeys(why.values())]


def _where(places: list[Report], every: list[Report]) -> str:
    """Return a short text for revisions and transports."""
    if places == every:
        return "everywhere"
    revisions = sorted({each.revision for each in places})
    overs = [over for over in TRANSPORTS if any(each.transport == over for each in places)]
    words = [", ".join(revisions), " and ".join(NAMES[over] for over in overs)]
    if places == [each for each in every if each.transport in overs]:
        return words[1]
    return words[0] if places == [each for each in every if each.revision in revisions] else ", ".join(words)


if __name__ == "__main__":
    from mcp.shared.exceptions import MCPDeprecationWarning

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.exit(anyio.run(main))
