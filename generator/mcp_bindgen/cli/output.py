"""Print for people and programs: colour and tables on a terminal, plain lines in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mcp_bindgen.spec import Correction, Decision, EffectiveSchema
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.pointer import split

from .terminal import console, say, write

if TYPE_CHECKING:
    from mcp_bindgen.emit import Bridges
    from mcp_bindgen.protocol import Protocol as Revision

PAGE = 80
"""The columns of text that is not for a terminal."""

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended, as shells say it."""

MARKUP: Literal["markdown"] | None = "markdown" if sys.stdout.isatty() else None
"""How `--help` is laid out: boxes and colour only where a person looks."""


class HasDecisions(Protocol):
    """A reading of a schema, or the protocol model that it ended in."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """How it was read where it breaks a rule."""
        ...


class HasCorrections(Protocol):
    """An effective schema, or the protocol model of one."""

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """The known mistakes that were corrected in it."""
        ...


def page() -> tuple[int, bool]:
    """Return how wide text on stdout may be, and whether it may have colour; a pipe is as wide as a page."""
    if not sys.stdout.isatty():
        return PAGE, False
    target = console()
    return target.width, target.color_system is not None and not target.no_color


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, each cell as one line: folded to the terminal, or one aligned line per row in a pipe."""
    cells = [[printable(" ".join(cell.split())) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.table import Column, Table

        table = Table(
            *(Column(name, overflow="fold") for name in columns), box=None, header_style="bold", pad_edge=False
        )
        for row in cells:
            table.add_row(*row)
        console().print(table)
        return
    widths = [max(len(line[index]) for line in [columns, *cells]) for index in range(len(columns))]
    for line in [columns, *cells]:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def say_missing(steps: Bridges) -> bool:
    """Say on stderr for how many hard places of steps rules are missing, and which rules stand for nothing.

    Returns:
        Whether there are such, in the installation: drafts refuse what no rule converts.
    """
    missing = sum(len(plan.missing) for plan in steps.plans)
    if missing:
        say(
            f"bridges: {missing} places have no rule and are refused; see them with: mcp-bindgen bridges --missing",
            err=True,
        )
    unused = [(plan, rule) for plan in steps.plans for rule in plan.unused]
    for plan, rule in unused:
        say(f"{steps.file}: {plan.name}: {'.'.join(rule.path)} is no place; remove the rule", err=True)
    return not steps.users and bool(missing or unused)


def say_corrections(*sources: HasCorrections) -> None:
    """Say on stderr which known mistakes were corrected in files from outside; each of them once."""
    for correction in dict.fromkeys(correction for source in sources for correction in source.corrections):
        say(f"corrected: {correction}", err=True)


def say_decisions(*sources: HasDecisions) -> None:
    """Say on stderr how schema files were read that break a rule: a line for each decision, once."""
    for decision in dict.fromkeys(decision for source in sources for decision in source.decisions):
        say(f"warning: {decision}", err=True)


def say_incomplete(*protocols: Revision) -> None:
    """Say on stderr which revisions have no definitions to connect with."""
    for protocol in protocols:
        if protocol.facts.missing:
            missing = ", ".join(protocol.facts.missing)
            say(f"{protocol.revision}: types and stubs only, nothing can connect: there is no {missing}", err=True)


def say_copies(*sources: EffectiveSchema) -> None:
    """Say on stderr which definitions of extensions have the name of one of core's, and say something else."""
    for extension in (extension for source in sources for extension in source.extensions):
        for copy in extension.copies:
            say(f"warning: {extension.file}: {copy}", err=True)


def about(protocol: Revision, definition: str) -> list[dict[str, str]]:
    """Return for machines the decisions about a definition, and about what is inside of it."""
    name = protocol.definitions[definition].alias or definition
    return [asdict(decision) for decision in protocol.decisions if split(decision.pointer)[1:2] == [name]]


def print_json(value: Any) -> None:
    """Print `value` for machines."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
