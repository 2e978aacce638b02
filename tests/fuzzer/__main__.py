"""Try what our servers and clients make of mutated messages; progress is shown on a terminal."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from functools import partial

from .failure import Violation
from .run import Figures, run
from .trial import Trial, trials


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzer", description=__doc__)
    parser.add_argument("--role", help="the side that is tried: server or client; both by default")
    parser.add_argument("--transport", help="how messages reach it; every way by default")
    parser.add_argument("--revision", help="the revision that is spoken; all by default")
    parser.add_argument("--seed", type=int, default=0, help="decides everything")
    parser.add_argument("--count", type=int, default=20_000, help="messages of all trials together")
    parser.add_argument("--only", type=_numbers, help="the numbers of the messages that are sent; all by default")
    given = parser.parse_args()
    chosen = trials(given.count, given.seed, role=given.role, transport=given.transport, revision=given.revision)
    if not chosen:
        parser.error("nothing is like that; see TRANSPORTS in tests/fuzzer/trial.py")
    failed, messages, began = False, 0, time.monotonic()
    for trial in chosen:
        one = replace(trial, only=given.only)
        try:
            figures = run(one, partial(_progress, one))
        except Violation as violation:
            failed = True
            print(f"{one}: {violation}", flush=True)
            print(*getattr(violation.__cause__, "__notes__", []), sep="\n", file=sys.stderr)
        else:
            messages += figures.messages
            print(_line(one, figures), flush=True)
    print(f"{messages} messages, {time.monotonic() - began:.0f} s")
    sys.exit(failed)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, filter(None, text.split(","))))


def _progress(trial: Trial, figures: Figures) -> None:
    if sys.stderr.isatty():
        print(f"\r{_line(trial, figures)}", end="\r", file=sys.stderr, flush=True)


def _line(trial: Trial, figures: Figures) -> str:
    return f"{trial}: {figures.messages} messages, {figures.seconds:.1f} s, at most {figures.peak}"


if __name__ == "__main__":
    main()
