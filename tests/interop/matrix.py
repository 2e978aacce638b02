"""Talks to everybody and writes docs/interop.md: `python -m tests.interop.matrix`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import anyio
from mcp.shared.exceptions import MCPDeprecationWarning

from .peers import NODE, PYTHON, TRANSPORTS, Peer, cases
from .processes import MODULES
from .report import FEATURES, REVISIONS, Report

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
COLUMNS = [(revision, over) for revision in REVISIONS for over in TRANSPORTS]
AT_ONCE = 2

INTRODUCTION = """\
# Interoperability

What was tried with implementations of MCP that are not ours. `python -m tests.interop.matrix` has all these
conversations and writes this page; `make test` has them too, and fails when this page says something else.

A number is how many features a conversation tried with success; a feature may be many checks. *n/a* counts what the
revision has and the peer has not, as the peer itself shows; the reasons are below. Over stdio, a foreign client asks
our server for the client's newest revision, and our server, which has one revision only, answers with that. Over SSE,
our server offers all revisions (to the Inspector: one), and the client asks for one.
"""


def installed(peer: Peer) -> str:
    """The version of a peer that is installed here."""
    if peer in PYTHON:
        return version(peer.package)
    found: str = json.loads((MODULES / peer.package / "package.json").read_text("utf-8"))["version"]
    return found


def cell(report: Report) -> str:
    """How a conversation went."""
    if report.failures:
        return f"FAILED: {', '.join(report.failures)}"
    return f"{len(report.works)}, {len(report.absent)} n/a" if report.absent else str(len(report.works))


def documented(peer: Peer, revision: str, over: str) -> str | None:
    """What the page says of a conversation; `None` when the page is about another version of the peer."""
    for line in PAGE.read_text("utf-8").splitlines():
        name, *cells = [part.strip() for part in line.strip("|").split("|")]
        if name == peer.name and len(cells) == 1 + len(COLUMNS):
            return cells[1 + COLUMNS.index((revision, over))] if cells[0] == _package(peer) else None
    return None


def verify(peer: Peer, revision: str, over: str) -> None:
    """Has one conversation: every step must succeed, and the page must say what came of it."""
    report = anyio.run(peer.report, revision, over)
    report.check()
    assert documented(peer, revision, over) in (cell(report), None), "python -m tests.interop.matrix"


async def main() -> int:
    """Writes the page; says whether something failed."""
    reports: dict[tuple[Peer, str, str], Report] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def talk(peer: Peer, revision: str, over: str) -> None:
        async with limiter:
            reports[peer, revision, over] = report = await peer.report(revision, over)
            print(f"{peer.name}, {revision}, {over}: {cell(report)}", file=sys.stderr)

    async with anyio.create_task_group() as tasks:
        for case in cases((*PYTHON, *NODE)):
            tasks.start_soon(talk, *case)
    PAGE.write_text("\n".join([INTRODUCTION, *_table(reports), *_features(), *_absent(reports)]), "utf-8")
    return int(any(report.failures for report in reports.values()))


def _package(peer: Peer) -> str:
    return f"`{peer.package}` {installed(peer)}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(reports: dict[tuple[Peer, str, str], Report]) -> list[str]:
    lines: list[str] = []
    for title, side in (("Our clients, their servers", "client"), ("Our servers, their clients", "server")):
        head = [f"{revision} {'SSE' if over == 'sse' else over}" for revision, over in COLUMNS]
        lines += [f"## {title}", "", _row(["peer", "package", *head]), _row(["---"] * (len(head) + 2))]
        for peer in (*PYTHON, *NODE):
            if peer.ours == side:
                found = [reports.get((peer, *column)) for column in COLUMNS]
                lines.append(_row([peer.name, _package(peer), *("-" if one is None else cell(one) for one in found)]))
        lines.append("")
    return lines


def _features() -> list[str]:
    lines = ["## Features", ""]
    for revision in REVISIONS:
        names = [name for name, since in FEATURES.items() if since == revision]
        if names:
            lines.append(f"- from {revision}: {', '.join(names)}")
    return [*lines, ""]


def _absent(reports: dict[tuple[Peer, str, str], Report]) -> list[str]:
    """What peers cannot do, each reason once."""
    lines = ["## What is not applicable, and why", "", _row(["peer", "feature", "where", "why"]), _row(["---"] * 4)]
    for peer in (*PYTHON, *NODE):
        for over, reason in peer.absent.items():
            lines.append(_row([peer.name, "all", over.upper(), reason]))
        mine = {case[1:]: report for case, report in reports.items() if case[0] is peer}
        for feature in FEATURES:
            reasons: dict[str, list[tuple[str, str]]] = {}
            for where in COLUMNS:
                if where in mine and feature in mine[where].absent:
                    reasons.setdefault(mine[where].absent[feature], []).append(where)
            for reason, places in reasons.items():
                lines.append(_row([peer.name, feature, _where(places, feature, peer), reason]))
    return [*lines, ""]


def _where(places: list[tuple[str, str]], feature: str, peer: Peer) -> str:
    """Revisions and transports, in few words."""
    revisions = sorted({revision for revision, _ in places})
    overs = sorted({over for _, over in places})
    every = [revision for revision in REVISIONS if FEATURES[feature] <= revision]
    words = "everywhere" if revisions == every else ", ".join(revisions)
    return words if set(overs) == set(TRANSPORTS) - set(peer.absent) else f"{words}, {' and '.join(map(_name, overs))}"


def _name(over: str) -> str:
    return "SSE" if over == "sse" else over


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.exit(anyio.run(main))
