"""Render a report in a format."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from typing import Any

from mcp_bindgen.spec.errors import printable

from .document import Document
from .text import Page, text


class Format(StrEnum):
    """Format of a report. The renderer is the function of this name in the module of this name, or in `ci`."""

    TEXT = "text"
    LINE = "line"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"


LOCATED = frozenset({Format.GITHUB, Format.SARIF, Format.JUNIT})
"""Formats for continuous integration, which show files and lines."""


@dataclass(frozen=True)
class Report:
    """Report of a command; each form is made when a format asks for it.

    Attributes:
        document: Return the report as a document.
        record: Return the report as a JSON value.
        html: Return the report as an HTML page, if it has a page of its own.
        max_lines: Number of lines beyond which text counts findings instead of listing them.
    """

    document: Callable[[], Document]
    record: Callable[[], Any]
    html: Callable[[], str] | None = None
    max_lines: int | None = None


def render(report: Report, format: Format, page: Page | None = None) -> str:
    """Return a report in a format; it ends with a line break."""
    if format is Format.TEXT:
        return text(report.document(), replace(page or Page(), max_lines=report.max_lines))
    if format is Format.JSON:
        return printable(json.dumps(report.record(), indent=2, ensure_ascii=False), keep="\n") + "\n"
    if format is Format.HTML and report.html is not None:
        return report.html()
    module = format if format in (Format.MARKDOWN, Format.HTML) else "ci"
    renderer: Callable[[Document], str] = getattr(import_module(f".{module}", __package__), format)
    return renderer(report.document())
