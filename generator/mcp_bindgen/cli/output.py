"""How commands print: colour and tables on a terminal, plain lines in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

_WIDE = 10_000

MARKUP: Literal["markdown"] | None = "markdown" if sys.stdout.isatty() else None
"""How `--help` is laid out: boxes and colour only where a person looks."""


def console(*, stderr: bool = False) -> Console:
    """A console for stdout or stderr; in a pipe lines are never folded. `NO_COLOR` is honoured."""
    found = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDE, no_color=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table: folded to the terminal, or one aligned line per row in a pipe."""
    target = console()
    rows = list(rows)
    if target.is_terminal:
        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for row in rows:
            table.add_row(*row)
        target.print(table)
        return
    widths = [max(len(line[index]) for line in [columns, *rows]) for index in range(len(columns))]
    for line in [columns, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_json(value: Any) -> None:
    """Prints `value` for machines."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
