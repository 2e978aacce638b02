"""`mcp-bindgen bridges`: report conversions and losses between revisions."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.bridging.chain import chain, missed
from mcp_bindgen.conversion.descriptions import Section, sections
from mcp_bindgen.conversion.differences import Plan
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.missing import with_missing_rules
from mcp_bindgen.conversion.source import models
from mcp_bindgen.conversion.steps import rule_file
from mcp_bindgen.report import Document, Format, Report
from mcp_bindgen.report import document as doc
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.transaction import save

from .options import Folder, Json, option
from .output import print_report
from .terminal import say, write

Subject = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:CLASS", help="A server or client class of yours; by default all steps."),
]


def bridges(
    subject: Subject = None,
    missing: Annotated[bool, option("missing")] = False,
    writes: Annotated[bool, option("append")] = False,
    as_json: Json = False,
    folder: Folder = None,
) -> None:
    """Report how payloads change between revisions: conversions, losses and refusals.

    Examples:

    `mcp-bindgen bridges` shows every step between adjacent revisions.

    `mcp-bindgen bridges weather:Weather` shows the parts of this server that clients of each revision miss.

    `mcp-bindgen bridges --missing` prints the rules to write, as TOML.

    `mcp-bindgen bridges --missing --append` adds the rules to `bridges.toml`, and changes no line that is there.

    `mcp-bindgen bridges --missing --folder schema` prints the rules of another schema folder.
    """
    if missing and (as_json or subject is not None):
        raise BadInput("--missing prints TOML, of all steps", fix="leave the other options out")
    if writes and not missing:
        raise BadInput("--append is for the rules of --missing", fix="add --missing")
    if folder is not None and subject is not None:
        raise BadInput("--folder is for the steps between revisions", fix="leave it out")
    if subject is not None:
        report = _missed_report(subject)
    else:
        store = Store(folder)
        both = {users: models(store, users=users) for users in (False, True)}
        if missing:
            _print_missing(store, both, writes=writes)
            return
        report = _steps_report([plan for found in both.values() for model in found for plan in model.bridges])
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


def _print_missing(store: Store, both: Mapping[bool, Sequence[Model]], *, writes: bool) -> None:
    """Print the rules that are missing, or add them to the files of rules."""
    for users, found in both.items():
        revisions = {model.protocol.revision: model.protocol for model in found}
        file = rule_file(store, users=users)
        text = so_far = file.read_text("utf-8") if writes and file.exists() else ""
        for plan in (plan for model in found for plan in model.bridges if plan.missing):
            text = with_missing_rules(text, plan, revisions)
        if text != so_far and writes:
            _save(file, text)
        elif text != so_far:
            write(f"# for {file}\n{text}")
    if not any(plan.missing for found in both.values() for model in found for plan in model.bridges):
        say("no rule is missing", err=True)


def _save(file: Path, text: str) -> None:
    try:
        tomllib.loads(text)
    except ValueError:
        raise BadInput("has other tables of the step", file=file, fix="leave out --append, and add the rules") from None
    save(file, text, "leave out --append")
    say(f"rules added to {file}")


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
