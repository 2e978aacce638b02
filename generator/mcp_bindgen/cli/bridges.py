"""`mcp-bindgen bridges`: report conversions and losses between revisions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from mcp_bindgen.bridging.chain import chain, missed
from mcp_bindgen.conversion.descriptions import Section, missing_rules, sections
from mcp_bindgen.conversion.differences import Plan
from mcp_bindgen.conversion.source import models
from mcp_bindgen.conversion.steps import rule_file
from mcp_bindgen.report import Document, Format, Report
from mcp_bindgen.report import document as doc
from mcp_bindgen.spec import BadInput, Store

from .options import Folder, Json
from .output import print_report
from .terminal import say, write

Subject = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:CLASS", help="A server or client class of yours; by default all steps."),
]


def bridges(
    subject: Subject = None,
    missing: Annotated[bool, typer.Option("--missing", help="Print the rules that are missing, as TOML.")] = False,
    as_json: Json = False,
    folder: Folder = None,
) -> None:
    """Report how payloads change between revisions: conversions, losses and refusals.

    Examples:

    `mcp-bindgen bridges` shows every step between adjacent revisions.

    `mcp-bindgen bridges weather:Weather` shows the parts of this server that clients of each revision miss.

    `mcp-bindgen bridges --missing` prints the rules to write, as TOML.

    `mcp-bindgen bridges --missing --folder schema` prints the rules of another schema folder.
    """
    if missing and (as_json or subject is not None):
        raise BadInput("--missing prints TOML, of all steps", fix="leave the other options out")
    if folder is not None and subject is not None:
        raise BadInput("--folder is for the steps between revisions", fix="leave it out")
    if subject is not None:
        report = _missed_report(subject)
    else:
        store = Store(folder)
        both = [
            (users, plan) for users in (False, True) for model in models(store, users=users) for plan in model.bridges
        ]
        if missing:
            _print_missing(store, both)
            return
        report = _steps_report([plan for _, plan in both])
    print_report(report, Format.JSON if as_json else Format.TEXT)


def _steps_report(steps: Sequence[Plan]) -> Report:
    def document() -> Document:
        return Document("bridges", [doc.Section(plan.name, [_block(one) for one in sections(plan)]) for plan in steps])

    def record() -> object:
        return [{"step": plan.name, "sections": [_section(one) for one in sections(plan)]} for plan in steps]

    return Report(document, record)


def _block(section: Section) -> doc.Section:
    items = [
        f"{', '.join(map(doc.code, names))}{f': {doc.prose(why)}' if why else ''}" for names, why in section.entries
    ]
    return doc.Section(section.title, [doc.Bullets(items)])


def _section(section: Section) -> dict[str, Any]:
    entries = [{"places": places, "reason": reason} for places, reason in section.entries]
    return {"title": section.title, "entries": entries}


def _print_missing(store: Store, both: list[tuple[bool, Plan]]) -> None:
    incomplete = [(users, plan) for users, plan in both if plan.missing]
    for users in {users: None for users, _ in incomplete}:
        say(f"# for {rule_file(store, users=users)}")
        write("\n".join(missing_rules(plan) for own, plan in incomplete if own is users))
    if not incomplete:
        say("no rule is missing", err=True)


def _missed_report(subject: str) -> Report:
    """Return the report of the parts of a class that peers of each revision miss."""
    kind = _imported(subject)
    handled = kind.dispatcher.offered(object.__new__(kind))
    reached = [name for name in Store().pins if chain(kind.revision, name) is not None]
    if not {*reached} - {kind.revision}:
        fix = "import that revision: mcp-bindgen schema import"
        raise BadInput(f"no bridges lead from MCP {kind.revision}", fix=fix)
    found = {name: missed(kind.revision, name, handled) for name in reached}

    def document() -> Document:
        items = {name: list(map(doc.prose, lines)) or ["nothing is missed"] for name, lines in found.items()}
        return Document("bridges", [doc.Section(f"MCP {name}", [doc.Bullets(lines)]) for name, lines in items.items()])

    return Report(document, lambda: found)


def _imported(subject: str) -> Any:
    """Return the class that `MODULE:CLASS` names; the current folder is searched first, as Python does."""
    module, _, name = subject.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # an import may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInput(
            f"{subject!r} cannot be imported: {reason}", fix="give it as MODULE:CLASS, as in weather:Weather"
        ) from None
    if not isinstance(found, type) or not hasattr(found, "dispatcher"):
        raise BadInput(f"{subject!r} is not a server or client class", fix="name a subclass of Server or Client")
    return found
