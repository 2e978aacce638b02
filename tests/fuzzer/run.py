"""Run a trial, monitor the resources of the process, and reduce a failure to few messages."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import anyio

from tests.harness.commands import ROOT
from tests.harness.processes import free_port, process

from .against_clients import Calls
from .against_http_servers import Http
from .against_servers import Memory, Sse, Stdio, over_stdio
from .checker import Vitals
from .failure import Violation, plainly
from .traffic import traffic
from .trial import Trial

GROWTH = 96 * 2**20
"""Bytes by which the memory of a process may grow after its first rounds."""

THREADS = 8
FILES = 16
WARM = 3
"""Rounds after which a process has loaded all its modules."""

SHRINKING = 30.0
"""Seconds to spend on the reduction of a failure."""


class Subject(Protocol):
    """Side under test; it runs rounds one after another."""

    pid: int

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        ...


@dataclass
class Figures:
    """Measurements of a trial.

    Attributes:
        messages: Number of messages sent.
        seconds: Duration of the trial.
        peak: Highest resource use of the process.
        first: Resource use of the process after `WARM` rounds.
    """

    messages: int = 0
    seconds: float = 0.0
    first: Vitals | None = None
    peak: Vitals = field(default_factory=lambda: Vitals(0, 0, 0))

    def note(self, vitals: Vitals) -> None:
        """Record the resources of the process; raise `Violation` if they exceed the limits."""
        peak = self.peak
        self.peak = Vitals(*map(max, zip(_tuple(vitals), _tuple(peak), strict=True)))
        first = self.first
        if first is None:
            return
        limits = Vitals(first.memory + GROWTH, first.threads + THREADS, first.files + FILES)
        if any(now > most for now, most in zip(_tuple(vitals), _tuple(limits), strict=True)):
            raise Violation(f"the process holds {vitals}, after its first rounds it was {first}")


def _tuple(vitals: Vitals) -> tuple[int, int, int]:
    return vitals.memory, vitals.threads, vitals.files


@asynccontextmanager
async def subject(trial: Trial) -> AsyncGenerator[Subject]:
    """Start the side that a trial tests."""
    if trial.role == "client":
        yield Calls()
    elif trial.transport == "memory":
        yield Memory()
    elif trial.transport == "stdio":
        async with over_stdio(trial.revision) as (connection, pid):
            yield Stdio(trial, connection, pid)
    else:
        port = free_port()
        command = [sys.executable, "tests/fuzzer/peers.py"]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            command += ["--http", f"127.0.0.1:{port}"]
            with process(command, port, log, PYTHONPATH=os.pathsep.join(map(str, [ROOT, *sys.path]))) as running:
                try:
                    yield (Sse if trial.transport == "sse" else Http)(port, running.pid)
                    if running.poll() is not None:
                        raise Violation(f"the process ended with status {running.returncode}")
                except BaseException as error:
                    error.add_note(log.read_text("utf-8", "replace")[-2000:])
                    raise


async def _try(trial: Trial, told: Callable[[Figures], object]) -> Figures:
    figures, began = Figures(), time.monotonic()
    async with subject(trial) as one:
        for number, part in enumerate(trial.rounds() if trial.only is None else [trial]):
            try:
                with plainly():
                    await one.round(part)
                figures.note(Vitals.of(one.pid))
            except (Violation, TimeoutError, OSError) as error:
                raise Failure(part, trial, error) from error
            figures.messages += part.count
            figures.seconds = time.monotonic() - began
            if number == WARM:
                figures.first = Vitals.of(one.pid)
            told(figures)
    return figures


class Failure(Exception):
    """Failure of a round."""

    def __init__(self, part: Trial, whole: Trial, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.part, self.whole, self.error = part, whole, error


def run(trial: Trial, told: Callable[[Figures], object] = lambda figures: None) -> Figures:
    """Run a trial.

    Args:
        trial: The trial.
        told: Called after each round.

    Raises:
        Violation: The trial failed; the message ends with the command that repeats the failure.
    """
    logging.disable(logging.CRITICAL)  # logging each message would take most of the time
    traffic(trial.revision)  # recording needs an event loop of its own
    try:
        return anyio.run(_try, trial, told)
    except Failure as failure:
        raise Violation(_report(failure)) from failure.error
    finally:
        logging.disable(logging.NOTSET)


def _report(failure: Failure) -> str:
    """Return the failure and the shortest command that repeats it."""
    small = _shrunk(failure.part)
    if small is None:
        return f"{failure}\nOnly after the rounds before: {failure.whole.command}"
    sent = "\n".join(f"  {number}: {data[:300]!r}" for number, data in small.messages()[:20])
    return f"{failure}\nTry again: {small.command}\nIt sends\n{sent}"


def _fails(trial: Trial) -> bool:
    try:
        anyio.run(_try, trial, lambda figures: None)
    except Failure:
        return True
    return False


def _shrunk(trial: Trial) -> Trial | None:
    """Return a trial with fewer messages that fails as well, or None if the trial alone does not fail."""
    until = time.monotonic() + SHRINKING
    numbers = [number for number, _ in trial.messages()]
    if not _fails(trial):
        return None
    size = (len(numbers) + 1) // 2
    while size:
        start = 0
        while start < len(numbers) and time.monotonic() < until:
            fewer = numbers[:start] + numbers[start + size :]
            if _fails(replace(trial, only=tuple(fewer))):
                numbers = fewer
            else:
                start += size
        size = size // 2
    return replace(trial, only=tuple(numbers))
