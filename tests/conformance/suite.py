"""The official conformance suite as a command: its scenarios and their outcomes."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any, Literal, TypeAlias

from ruamel.yaml import YAML

from tests.interop.processes import node

HERE = Path(__file__).parent
PACKAGE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance"
PATIENCE = 60.0
"""Time limit of a scenario, in seconds."""

Side: TypeAlias = Literal["server", "client"]


@dataclass(frozen=True)
class Scenario:
    """A scenario of the suite.

    Attributes:
        side: The side under test.
        name: Its name.
        revisions: Its revisions; none if it tests an extension.
        is_extension: True if it tests an extension.
        checks_nothing: True if the suite lists its name, but has no checks for it yet.
    """

    side: Side
    name: str
    revisions: tuple[str, ...]
    is_extension: bool = False
    checks_nothing: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of a scenario.

    Attributes:
        passed: Number of successful checks.
        skipped: Reasons of skipped checks.
        problems: Failures and warnings.
        written: True if the suite implements the scenario.
    """

    passed: int = 0
    skipped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    written: bool = True

    @property
    def good(self) -> bool:
        """True if there are no problems, and at least one check passed if the scenario has checks."""
        return (self.passed > 0 or not self.written) and not self.problems


class Suite:
    """The suite, as processes that run one scenario each; several may run at the same time.

    Args:
        command: The command line that starts the suite.
    """

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command or (node(), str(HERE / "suite.mjs"), str(PACKAGE / "dist" / "index.js"))
        self._idle: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *_: object) -> None:
        while self._idle:
            self._idle.pop().communicate()

    def scenarios(self, side: Side) -> list[Scenario]:
        """Return all scenarios for a side, in the order of the suite."""
        return listed(side, self._played("list", f"--{side}")["output"])

    def run(self, scenario: Scenario, revision: str, target: str) -> Outcome:
        """Run a scenario.

        Args:
            scenario: The scenario.
            revision: The revision to speak.
            target: The URL of the server, or the command line of the client, to which the suite appends a URL.
        """
        with tempfile.TemporaryDirectory() as folder:
            what = ["--url", target] if scenario.side == "server" else ["--command", target]
            options = ["--scenario", scenario.name, "--spec-version", revision, "--output-dir", folder]
            if scenario.is_extension:  # scenarios of extensions belong to no revision
                options.append("--force")
            done = self._played(scenario.side, *what, *options)
            found = [json.loads(path.read_text("utf-8")) for path in Path(folder).rglob("checks.json")]
        if not done:
            return Outcome(problems=(f"no end after {PATIENCE:.0f} seconds",))
        outcome = judged(found[0] if found else [], done["code"], done["output"])
        if not scenario.checks_nothing:
            return outcome
        found_more = ("it checks something now",) if outcome.passed else ()
        return replace(outcome, written=False, problems=outcome.problems + found_more)

    def _played(self, *words: str) -> Any:
        """Return the exit code and the output of the command with some arguments; nothing after the time limit."""
        pipe = subprocess.PIPE
        one = self._idle.pop() if self._idle else subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert one.stdin is not None
        assert one.stdout is not None
        timer = Timer(PATIENCE, one.kill)
        timer.start()
        one.stdin.write(f"{json.dumps(words)}\n")
        one.stdin.flush()
        line = one.stdout.readline()
        timer.cancel()
        if line:
            self._idle.append(one)
            return json.loads(line)
        one.communicate()
        return {}


def listed(side: Side, text: str) -> list[Scenario]:
    """Return the scenarios in the output of `conformance list`."""
    lines = re.findall(r"^ +- (\S+) \[(.+)\]$", text, re.MULTILINE)
    return [
        Scenario(side, name, tuple(re.findall(r"\d{4}-\d\d-\d\d", marks)), "extension" in marks)
        for name, marks in lines
    ]


def judged(checks: Iterable[dict[str, Any]], code: int, output: str) -> Outcome:
    """Return the outcome of a scenario, from its checks and the exit code and output of the suite."""
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
    """Return the last line that a client wrote to standard error, or else the last line of the output."""
    shown = re.search(r"^Stderr:\n(.*?)\n\n", output, re.MULTILINE | re.DOTALL)
    lines = (shown[1] if shown else output).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def pinned() -> str:
    """Return the version of the suite that `package.json` pins."""
    package = json.loads((HERE / "package.json").read_text("utf-8"))
    return str(package["dependencies"]["@modelcontextprotocol/conformance"])


def installed() -> str | None:
    """Return the installed version of the suite, or None."""
    path = PACKAGE / "package.json"
    return json.loads(path.read_text("utf-8"))["version"] if path.is_file() else None


def requirements() -> dict[str, dict[Side, list[str]]]:
    """Return revision -> side -> the names of the scenarios that conformance to the revision requires."""
    files = sorted((PACKAGE / "requirements").glob("*.yaml"))
    sets: dict[str, Any] = {path.stem: YAML(typ="safe").load(path) for path in files}
    return {revision: {"server": one["server"], "client": one["client"]} for revision, one in sets.items()}
