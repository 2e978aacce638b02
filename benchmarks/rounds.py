"""Measure peers in turn, round by round; print medians of each figure, and of its ratio within each round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Found: TypeAlias = dict[str, list[Sequence[float]]]
"""Peer -> what was measured in each round."""


def in_turn(rounds: int, peers: Mapping[str, Callable[[], Sequence[float]]]) -> Found:
    """Measure every peer once in each round, so that a change of the machine's load meets all of them."""
    found: Found = {name: [] for name in peers}
    for _ in range(rounds):
        for name, measure in peers.items():
            found[name].append(measure())
    return found


def report(found: Found, columns: Mapping[str, int]) -> None:
    """Print a row for each peer, and the ratios of the first peer to each of the others.

    Args:
        found: What was measured.
        columns: What is said above each figure -> its decimals.
    """
    width = max(len(name) for name in found) + len("ours / ")
    print(" " * width, *columns, sep="  ")
    for name, rounds in found.items():
        _row(name, width, rounds, columns)
    (first, ours), *others = found.items()
    for name, theirs in others:
        ratios = [[a / b for a, b in zip(*pair, strict=True)] for pair in zip(ours, theirs, strict=True)]
        _row(f"{first} / {name}", width, ratios, dict.fromkeys(columns, 2))


def _row(name: str, width: int, rounds: Sequence[Sequence[float]], columns: Mapping[str, int]) -> None:
    medians = [statistics.median(figures) for figures in zip(*rounds, strict=True)]
    cells = [f"{one:{len(title)}.{digits}f}" for one, (title, digits) in zip(medians, columns.items(), strict=True)]
    print(f"{name:{width}}", *cells, sep="  ")
