"""Table of the commands: those of the compiler, and those that other wings and packages contribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mcp_bindgen.runtime.entry_points import EntryPoints
from mcp_bindgen.runtime.logs import log

_HEADINGS = (
    "Generate",
    "Compare",
    "Build servers and clients",
    "Talk to servers",
    "Prove conformance",
    "Maintain",
)
"""Headings of `--help` in order; headings of other packages follow."""


@dataclass(frozen=True)
class Command:
    """Command of the command line, or a group of commands.

    An object of the entry point `mcp_bindgen.commands` is a sequence of these.

    Attributes:
        name: Its name, which its function or its `Commands` in the module has, too.
        heading: Its heading in `--help`.
        module: The import name of its module, which is imported when the command is used.
        is_open: True if unknown options are arguments, as options of servers are.
    """

    name: str
    heading: str
    module: str
    is_open: bool = False


OWN = (
    Command("generate", "Generate", "mcp_bindgen.cli.generate"),
    Command("check", "Generate", "mcp_bindgen.cli.generate"),
    Command("diff", "Compare", "mcp_bindgen.cli.diff"),
    Command("history", "Compare", "mcp_bindgen.cli.diff", is_open=True),  # error codes
    Command("methods", "Compare", "mcp_bindgen.cli.show"),
    Command("show", "Compare", "mcp_bindgen.cli.show"),
    Command("model", "Compare", "mcp_bindgen.cli.show"),
    Command("bridges", "Compare", "mcp_bindgen.cli.bridges"),
    Command("scaffold", "Build servers and clients", "mcp_bindgen.cli.scaffold"),
    Command("vectors", "Prove conformance", "mcp_bindgen.cli.vectors"),
    Command("migrate", "Maintain", "mcp_bindgen.cli.migrate"),
    Command("upgrade", "Maintain", "mcp_bindgen.cli.migrate"),
    Command("schema", "Maintain", "mcp_bindgen.cli.schema"),
)
"""Commands of the compiler."""


def installed() -> Mapping[str, Command]:
    """Return name -> command, of the compiler and of all installed packages; no package takes a name of ours."""
    found = {one.name: one for one in OWN}
    contributed = EntryPoints[object]("mcp_bindgen.commands", "table of commands").objects
    for distribution, rows in sorted(contributed, key=lambda one: one[0] != "mcp-bindgen"):
        for one in cast(Sequence[object], rows) if isinstance(rows, Sequence) else [rows]:
            if not isinstance(one, Command):
                log.warning("an entry point of %s is left out: %r is no Command", distribution, one)
            elif found.setdefault(one.name, one) is not one:
                log.warning("the command %s of %s is left out: its name is taken", one.name, distribution)
    return found


def by_heading(commands: Iterable[Command]) -> Mapping[str, Sequence[str]]:
    """Return heading -> names of commands, in the order of `--help`."""
    found: dict[str, list[str]] = {heading: [] for heading in _HEADINGS}
    for one in commands:
        found.setdefault(one.heading, []).append(one.name)
    return {heading: names for heading, names in found.items() if names}
