"""`mcp-bindgen bridges`: say what is converted between revisions, and what is lost."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from mcp_bindgen.bridge.places import Plan
from mcp_bindgen.bridge.steps import plans, rule_file
from mcp_bindgen.bridge.words import Section, missing_rules, sections, step_words
from mcp_bindgen.bridging.chain import chain, missed
from mcp_bindgen.spec import BadInput, Store

from .options import Folder
from .output import print_json
from .terminal import say, write

Subject = Annotated[
    str | None,
    typer.Argument(metavar="[MODULE:CLASS]", help="A server or client class of yours; by default all steps."),
]


def bridges(
    subject: Subject = None,
    missing: Annotated[bool, typer.Option("--missing", help="Show the rules that are missing, to be written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    folder: Folder = None,
) -> None:
    """Say what becomes of what one revision says in another one: converted, lost, refused.

    Examples:

    `mcp-bindgen bridges` shows every step between adjacent revisions.

    `mcp-bindgen bridges weather:Weather` says what clients of each revision will miss of what this server offers.

    `mcp-bindgen bridges --missing` prints the rules that somebody has to write, as TOML.

    `mcp-bindgen bridges --missing --folder schema` prints those of another schema folder.
    """
    if missing and (as_json or subject is not None):
        raise BadInput("--missing prints TOML, of all steps", fix="leave the rest out")
    if folder is not None and subject is not None:
        raise BadInput("--folder is for the steps between revisions", fix="leave it out")
    if subject is not None:
        _print_missed(subject, as_json=as_json)
        return
    store = Store(folder)
    both = [(users, plan) for users in (False, True) for plan in plans(store, users=users)]
    if missing:
        _print_missing(store, both)
        return
    if as_json:
        print_json([{"step": plan.name, "sections": [_section(one) for one in sections(plan)]} for _, plan in both])
        return
    for number, (_, plan) in enumerate(both):
        for line in [*([""] if number else []), plan.name, *(f"  {line}" for line in step_words(plan))]:
            say(line)


def _section(section: Section) -> dict[str, Any]:
    entries = [{"places": places, "reason": reason} for places, reason in section.entries]
    return {"title": section.title, "entries": entries}


def _print_missing(store: Store, both: list[tuple[bool, Plan]]) -> None:
    lacking = [(users, plan) for users, plan in both if plan.missing]
    for users in {users: None for users, _ in lacking}:
        say(f"# for {rule_file(store, users=users)}")
        write("\n".join(missing_rules(plan) for own, plan in lacking if own is users))
    if not lacking:
        say("no rule is missing", err=True)


def _print_missed(subject: str, *, as_json: bool) -> None:
    kind = _imported(subject)
    handled = kind.dispatcher.offered(object.__new__(kind))
    reached = [name for name in Store().pins if chain(kind.revision, name) is not None]
    if not {*reached} - {kind.revision}:
        fix = "import that revision: mcp-bindgen schema import"
        raise BadInput(f"no bridges lead from MCP {kind.revision}", fix=fix)
    told = {name: missed(kind.revision, name, handled) for name in reached}
    if as_json:
        print_json(told)
        return
    for name, lines in told.items():
        for line in [f"MCP {name}{'' if lines else ': nothing is missed'}", *(f"  {line}" for line in lines)]:
            say(line)


def _imported(subject: str) -> Any:
    """Return the class that `MODULE:CLASS` names, as a program in the current folder would import it."""
    module, _, name = subject.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # whatever an import may raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInput(
            f"{subject!r} cannot be imported: {reason}", fix="give it as MODULE:CLASS, as in weather:Weather"
        ) from None
    if not isinstance(found, type) or not hasattr(found, "dispatcher"):
        raise BadInput(f"{subject!r} is no server or client", fix="name a subclass of Server or Client")
    return found
