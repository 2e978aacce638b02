"""Try something, watch what the process holds meanwhile, and make a failure small."""

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

from tests.support.commands import ROOT
from tests.support.processes import free_port, process

from .against_clients import Calls
from .against_http_servers import Http
from .against_servers import Memory, Sse, Stdio, over_stdio
from .checker import Vitals
from .failure import Violation, plainly
from .traffic import traffic
from .trial import Trial

GROWTH = 96 * 2**20
"""Bytes that a process may need more than after its first rounds."""

THREADS = 8
FILES = 16
WARM = 3
"""Rounds after which a process has loaded what it needs."""

SHRINKING = 30.0
"""Seconds to spend on making a failure small."""


class Subject(Protocol):
    """What is tried; rounds follow each other."""

    pid: int

    async def round(self, trial: Trial) -> None:
        """Try one round. Raises `Violation`."""
        ...


@dataclass
class Figures:
    """What a trial took.

    Attributes:
        messages: How many messages were sent.
        seconds: How long that took.
        peak: The most that the process held.
        first: What it held when it was warm.
    """

    messages: int = 0
    seconds: float = 0.0
    first: Vitals | None = None
    peak: Vitals = field(default_factory=lambda: Vitals(0, 0, 0))

    def note(self, vitals: Vitals) -> None:
        """Take note of what the process holds; raise `Violation` when that is too much."""
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
    """Set up what a trial is for."""
    if trial.role == "client":
        yield Calls()
    elif trial.transport == "memory":
        yield Memory()
    elif trial.transport == "stdio":
        async with over_stdio(trial.revision) as (connection, pid):
            yield Stdio(trial, connection, pid)
    else:
        port = free_port()
        command = [sys.executable, "tests/laboratory/peers.py"]
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
    """A round that went wrong."""

    def __init__(self, part: Trial, whole: Trial, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.part, self.whole, self.error = part, whole, error


def run(trial: Trial, told: Callable[[Figures], object] = lambda figures: None) -> Figures:
    """Try something.

    Args:
        trial: What.
        told: Called after each round.

    Raises:
        Violation: It went wrong; the message ends with the command that repeats it.
    """
    logging.disable(logging.CRITICAL)  # a line for each message would be most of the work
    traffic(trial.revision)  # recorded before a loop runs
    try:
        return anyio.run(_try, trial, told)
    except Failure as failure:
        raise Violation(_report(failure)) from failure.error
    finally:
        logging.disable(logging.NOTSET)


def _report(failure: Failure) -> str:
    """Return what went wrong, and the shortest way to see it again."""
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
    """Return a trial of fewer messages that goes wrong as well; `None` when this one does not, on its own."""
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
