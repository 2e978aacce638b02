"""Render what changed since the last look at a schema file."""

from __future__ import annotations

import json as encoder
from enum import StrEnum
from typing import Any

from mcp_bindgen.spec.errors import printable

from ..accept import Accepted
from ..watch import Look
from . import Style
from .github import command, github
from .json import document
from .markdown import code, markdown
from .record import as_json
from .text import text
from .words import plural


class LookFormat(StrEnum):
    """A form of the report."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    GITHUB = "github"


def render_look(look: Look, format: LookFormat, style: Style) -> str:
    """Return the report in one of its forms; it ends with a line break."""
    match format:
        case LookFormat.TEXT:
            return _text(look, style)
        case LookFormat.MARKDOWN:
            return _markdown(look, style)
        case LookFormat.JSON:
            return encoder.dumps(_record(look), indent=2, ensure_ascii=False) + "\n"
        case LookFormat.GITHUB:
            if look.comparison is not None and look.comparison.findings:
                return github([look.comparison])
            return command("notice", _line(look), title="mcp-bindgen watch") + "\n"


def _line(look: Look) -> str:
    """Say in one line what the look found."""
    place = printable(look.source.label)
    if look.comparison is None:
        return f"{place}: first look at {_what(look)}"
    changed = "changed" if look.comparison.findings else "nothing changed"
    return f"{place}: {changed} since {look.seen}"


def _what(look: Look) -> str:
    protocol = look.protocol
    counts = f"{plural(len(protocol.definitions), 'definition')}, {plural(len(protocol.methods), 'method')}"
    return f"{printable(protocol.revision)}: {counts}"


def _text(look: Look, style: Style) -> str:
    if look.comparison is None or not look.comparison.findings:
        return f"{_line(look)}\n"
    report = text([look.comparison], width=style.width, colour=style.colour, witness=style.witness)
    return f"{_line(look)}\n\n{report}"


def _markdown(look: Look, style: Style) -> str:
    """Return the body of an issue: title, verdicts and findings, and where all of it is from."""
    place = code(look.source.label)
    if look.comparison is None:
        return f"# MCP {code(look.protocol.revision)}: first look\n\n{place} is {_what(look)}.\n"
    report = markdown([look.comparison], witness=style.witness)
    return f"{report}\n{place}, last looked at on {look.seen}.\n"


def _record(look: Look) -> dict[str, Any]:
    """Return the report for programs: what was looked at, and the report of `diff` about it."""
    return {
        "source": look.source.label,
        "revision": look.protocol.revision,
        "digest": look.protocol.digest,
        "decisions": as_json(look.protocol.decisions),
        "lastLook": look.seen or None,
        "changed": bool(look.comparison is not None and look.comparison.findings),
        "report": document(Accepted((look.comparison,))) if look.comparison is not None else None,
    }
