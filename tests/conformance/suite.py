"""The official conformance suite as a command: which scenarios there are, and what becomes of one."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.interop.processes import node

HERE = Path(__file__).parent
PACKAGE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance"
PATIENCE = 60.0
"""Seconds that a scenario may take in all."""

Side: TypeAlias = Literal["server", "client"]


@dataclass(frozen=True)
class Scenario:
    """A scenario of the suite.

    Attributes:
        side: What it tests.
        name: Its name.
        revisions: The revisions that it is for; none if it is about an extension.
        is_extension: Whether it is about an extension.
        checks_nothing: Whether the suite has only its name yet.
    """

    side: Side
    name: str
    revisions: tuple[str, ...]
    is_extension: bool = False
    checks_nothing: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a scenario.

    Attributes:
        passed: How many checks succeeded.
        skipped: Why others were left out.
        problems: What failed, and what the suite warns of.
        written: Whether the suite has more of the scenario than its name.
    """

    passed: int = 0
    skipped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    written: bool = True

    @property
    def good(self) -> bool:
        """Whether something was checked, if there is something, and nothing is wrong."""
        return (self.passed > 0 or not self.written) and not self.problems


class Suite:
    """The suite.

    Args:
        command: How to start it.
    """

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command or (node(), str(PACKAGE / "dist" / "index.js"))

    def scenarios(self, side: Side) -> list[Scenario]:
        """All scenarios for a side, in the order of the suite."""
        done = subprocess.run(
            [*self._command, "list", f"--{side}"], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return listed(side, done.stdout)

    def run(self, scenario: Scenario, revision: str, target: str) -> Outcome:
        """Plays a scenario.

        Args:
            scenario: The scenario.
            revision: The revision to speak.
            target: The URL of the server, or the command line of the client, to which the URL of a server is added.
        """
        with tempfile.TemporaryDirectory() as folder:
            what = ["--url", target] if scenario.side == "server" else ["--command", target]
            options = ["--scenario", scenario.name, "--spec-version", revision, "--output-dir", folder]
            if scenario.is_extension:  # those are for no revision in particular
                options.append("--force")
            try:
                done = subprocess.run(
                    [*self._command, scenario.side, *what, *options], capture_output=True, text=True, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                return Outcome(problems=(f"no end after {PATIENCE:.0f} seconds",))
            found = [json.loads(path.read_text("utf-8")) for path in Path(folder).rglob("checks.json")]
        outcome = judged(found[0] if found else [], done.returncode, f"{done.stdout}\n{done.stderr}")
        if not scenario.checks_nothing:
            return outcome
        found_more = ("it checks something now",) if outcome.passed else ()
        return replace(outcome, written=False, problems=outcome.problems + found_more)


def listed(side: Side, text: str) -> list[Scenario]:
    """The scenarios in what `conformance list` prints."""
    lines = re.findall(r"^ +- (\S+) \[(.+)\]$", text, re.MULTILINE)
    return [
        Scenario(side, name, tuple(re.findall(r"\d{4}-\d\d-\d\d", marks)), "extension" in marks)
        for name, marks in lines
    ]


def judged(checks: Iterable[dict[str, Any]], code: int, output: str) -> Outcome:
    """The outcome of a scenario, from its checks, and the exit code and output of the suite."""
    by_status: dict[str, list[str]] = {}
    for check in checks:
        words = check.get("errorMessage") or check.get("description") or check["name"]
        by_status.setdefault(check["status"], []).append(f"{check['id']}: {' '.join(words.split())}")
    problems = by_status.get("FAILURE", []) + by_status.get("WARNING", [])
    if not problems and code:
        problems = [f"exit code {code}: {last_words(output)}"]
    elif not by_status:
        problems = ["nothing was checked"]
    return Outcome(len(by_status.get("SUCCESS", [])), tuple(by_status.get("SKIPPED", [])), tuple(problems))


def last_words(output: str) -> str:
    """The last line that a client wrote to standard error, as the suite shows it; else the last line of all."""
    shown = re.search(r"^Stderr:\n(.*?)\n\n", output, re.MULTILINE | re.DOTALL)
    lines = (shown[1] if shown else output).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def pinned() -> str:
    """The version of the suite that `package.json` asks for."""
    package = json.loads((HERE / "package.json").read_text("utf-8"))
    return str(package["dependencies"]["@modelcontextprotocol/conformance"])


def installed() -> str | None:
    """The version that is installed."""
    path = PACKAGE / "package.json"
    return json.loads(path.read_text("utf-8"))["version"] if path.is_file() else None
