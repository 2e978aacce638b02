"""Run the conformance suite on our examples: `python -m tests.conformance.run` checks docs/reference/conformance.md.

The run fails if a scenario fails, warns, or checks nothing although it should, and if the page is out of date;
`--write` writes the page.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from tests.conformance.suite import Outcome, Scenario, Side, Suite, installed, pinned, requirements
from tests.harness.cluster import plain_nginx
from tests.harness.commands import COMMAND, ROOT, execute
from tests.harness.forks import PYTHON
from tests.harness.processes import free_port, process
from tests.harness.redis_server import redis_server

PAGE = ROOT / "docs" / "reference" / "conformance.md"
SERVER = (sys.executable, str(ROOT / "examples" / "conformance_server.py"))
CLIENT = str(ROOT / "examples" / "conformance_client.py")
EXTENSIONS: Mapping[tuple[Side, str], tuple[str, ...]] = {
    ("client", "auth/"): ("2025-11-25", "2026-07-28"),
    ("client", "sep-2640-"): ("2026-07-28",),
    ("server", "sep-2640-"): ("2026-07-28",),
    ("server", "tasks-"): ("2026-07-28",),
}
"""Side and prefix of the scenarios of supported extensions -> revisions to run them in; the suite states none."""

CHECK_NOTHING = frozenset({"tasks-status-notifications"})
"""Scenarios that the suite lists without checks. They run as well, so that the first check that is added is noticed."""

TOGETHER = 2
"""Number of scenarios that run at the same time: the smallest machine has two processors."""

UNWRITTEN = "it is listed and not written yet, so nothing is checked"

Results: TypeAlias = Mapping[tuple[Scenario, str], Outcome]

INTRODUCTION = """\
# Conformance

Results of the official conformance suite (npm `@modelcontextprotocol/conformance` {version}) for
`examples/conformance_server.py` and `examples/conformance_client.py`, which use generated bindings and the
runtime, over Streamable HTTP. `make conformance` runs the suite, and fails when a scenario fails, warns or checks
nothing, or when this page is out of date; `python -m tests.conformance.run --write` writes the page.

A number counts the checks of a scenario, all successful; `-` stands where the suite has no such scenario for a
revision, and 0 where it lists a scenario without checks. There are no exceptions and no list of expected
failures. The suite's own client asks for 2025-11-25 in its handshake in every column, except in
`server-session-lifecycle`; messages are validated against the revision of the column. One server process answers all
columns at one URL. Some scenarios measure time: a failure on a busy machine gets a second run.
"""


REQUIRED = """\
## Required by a revision

The suite froze the scenarios that conformance to a revision requires when the revision was released (its option
`--requirements`); earlier revisions have no such list. Scenarios of extensions and later ones do not count.
"""
REQUIRED_COLUMNS = ("revision", "side", "passed", "required")


def wanted(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios to run, with the scenarios of supported extensions."""
    offered = [
        replace(each, revisions=each.revisions or _extended(each), checks_nothing=each.name in CHECK_NOTHING)
        for each in scenarios
    ]
    return [each for each in offered if each.revisions]


def _extended(scenario: Scenario) -> tuple[str, ...]:
    """Return the revisions in which a scenario of an extension runs; none if the extension is not supported."""
    found = [
        revisions
        for (side, start), revisions in EXTENSIONS.items()
        if scenario.is_extension and side == scenario.side and scenario.name.startswith(start)
    ]
    return found[0] if found else ()


@contextmanager
def serving(*options: str, port: int | None = None) -> Generator[str]:
    """Run the server for the duration of the block; yield its URL."""
    port = port or free_port()
    with TemporaryDirectory() as folder, process([*SERVER, *options, "--port", port], port, Path(folder, "log")):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def behind_a_gateway() -> Generator[str]:
    """Run `mcp-bindgen gateway` in front of the server for the duration of the block; yield the URL of the gateway."""
    port = free_port()
    with TemporaryDirectory() as folder, serving() as url:
        command = [COMMAND, "gateway", url, "--http", f"127.0.0.1:{port}"]
        with process(command, port, Path(folder, "log")):
            yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def sharing() -> Generator[str]:
    """Run two workers with a shared Redis, behind nginx without affinity, while the block runs; yield the URL."""
    ports = [free_port(), free_port()]
    with TemporaryDirectory() as folder, redis_server(Path(folder)) as redis, ExitStack() as stack:
        for port in ports:
            stack.enter_context(serving("--redis", redis.url, port=port))
        yield stack.enter_context(plain_nginx(Path(folder), ports))


def play(suite: Suite, scenarios: Sequence[Scenario], targets: Mapping[Side, str]) -> Results:
    """Run scenarios, each in all of its revisions, two at a time.

    Some scenarios measure time and fail on a busy machine. A scenario that fails runs again, alone.
    """
    every = [(scenario, revision) for scenario in scenarios for revision in scenario.revisions]
    with ThreadPoolExecutor(TOGETHER) as pool:
        outcomes = pool.map(lambda each: suite.run(each[0], each[1], targets[each[0].side]), every)
        results = dict(zip(every, outcomes, strict=True))
    for scenario, revision in [each for each, outcome in results.items() if not outcome.good]:
        print(f"{scenario.side} {revision} {scenario.name}: once more", file=sys.stderr)
        results[scenario, revision] = suite.run(scenario, revision, targets[scenario.side])
    return results


def summary(results: Results) -> str:
    """Return a line for each side and revision, and the problems."""
    lines: list[str] = []
    for side, revision in sorted({(scenario.side, revision) for scenario, revision in results}):
        mine = [(one, out) for (one, spoken), out in results.items() if one.side == side and spoken == revision]
        good = sum(outcome.good for _, outcome in mine)
        checks = sum(outcome.passed for _, outcome in mine)
        lines.append(f"{side:6}  {revision}  {good:2} of {len(mine):2} scenarios  {checks:3} checks")
        for scenario, outcome in mine:
            lines += [f"    {scenario.name}: {problem}" for problem in outcome.problems]
    return "\n".join(lines)


def page(results: Results, extensions: Iterable[Scenario], version: str) -> str:
    """Return the text of docs/reference/conformance.md."""
    lines = [INTRODUCTION.format(version=version)]
    for side in ("server", "client"):
        mine = {key: outcome for key, outcome in results.items() if key[0].side == side}
        columns = sorted({revision for _, revision in mine})
        lines += [f"## The {side}", "", _row(["scenario", *columns]), _row(["---"] * (1 + len(columns)))]
        for scenario in dict.fromkeys(scenario for scenario, _ in mine):
            shown = f"`{scenario.name}`{' (extension)' if scenario.is_extension else ''}"
            lines.append(_row([shown, *(_cell(mine.get((scenario, one))) for one in columns)]))
        lines.append("")
        notes = {
            f"- `{scenario.name}`, {revision}: {reason}"
            for (scenario, revision), outcome in mine.items()
            for reason in (outcome.skipped if outcome.written else [UNWRITTEN])
        }
        if notes:
            lines += ["The suite left out:", "", *sorted(notes), ""]
    lines += required(results)
    names = ", ".join(f"`{each.name}`" for each in extensions)
    if names:
        lines += ["## Not run", "", f"- Extensions, of which none is offered: {names}.", ""]
    return "\n".join(lines)


def required(results: Results) -> list[str]:
    """Return the section about the scenarios that each revision requires, which the suite froze at its release."""
    good = {(each.side, revision, each.name) for (each, revision), outcome in results.items() if outcome.good}
    rows = [
        (revision, side, str(sum((side, revision, name) in good for name in names)), str(len(names)))
        for revision, sets in requirements().items()
        for side, names in sets.items()
    ]
    return [REQUIRED, _row(REQUIRED_COLUMNS), _row(["---"] * 4), *map(_row, rows), ""]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return str(outcome.passed) if outcome.good else "FAILED"


def main() -> int:
    """Run all scenarios; return 1 if one fails or the page is out of date."""
    parser = argparse.ArgumentParser(description="Runs the official conformance suite on our examples.")
    parser.add_argument(
        "--write", action="store_true", help="write docs/reference/conformance.md instead of checking it"
    )
    parser.add_argument(
        "--workers",
        metavar="REVISION",
        nargs="*",
        help="play the scenarios of servers on two workers behind nginx that share Redis, in these revisions or in all",
    )
    parser.add_argument(
        "--gateway",
        metavar="REVISION",
        nargs="*",
        help="play the scenarios of servers through a gateway, in these revisions or in all",
    )
    given = parser.parse_args()
    if installed() != pinned():
        sys.exit(f"the suite is not installed in version {pinned()}: npm ci --prefix tests/conformance")
    with Suite() as suite:
        return _run(suite, given)


def _run(suite: Suite, given: argparse.Namespace) -> int:
    if given.workers is not None:
        return _play_elsewhere(suite, sharing, given.workers)
    if given.gateway is not None:
        return _play_elsewhere(suite, behind_a_gateway, given.gateway)
    every = [*suite.scenarios("server"), *suite.scenarios("client")]
    execute(PYTHON, "-c", "")  # scenarios have a time limit, and the first start of a program is slow
    left_out = [each for each in every if not (each.revisions or _extended(each))]
    shown = PAGE.read_text("utf-8") if PAGE.is_file() and not given.write else None
    with serving() as url:
        targets: Mapping[Side, str] = {"server": url, "client": shlex.join([PYTHON, CLIENT])}
        results = play(suite, wanted(every), targets)
        if shown is not None and page(results, left_out, pinned()) != shown:
            # Some scenarios check each request, and a client on a busy machine may send one more.
            results = play(suite, wanted(every), targets)
    text = page(results, left_out, pinned())
    print(summary(results))
    if given.write:
        PAGE.write_text(text, "utf-8")
    elif text != shown:
        print("docs/reference/conformance.md is out of date: python -m tests.conformance.run --write", file=sys.stderr)
        return 1
    return int(not all(outcome.good for outcome in results.values()))


def _play_elsewhere(suite: Suite, place: Callable[[], AbstractContextManager[str]], revisions: Sequence[str]) -> int:
    """Run the scenarios for servers on another endpoint, in some revisions or all."""
    chosen = [
        replace(each, revisions=tuple(one for one in each.revisions if not revisions or one in revisions))
        for each in wanted(suite.scenarios("server"))
    ]
    with place() as url:
        results = play(suite, [each for each in chosen if each.revisions], {"server": url})
    print(summary(results))
    return int(not results or not all(outcome.good for outcome in results.values()))


if __name__ == "__main__":
    sys.exit(main())
