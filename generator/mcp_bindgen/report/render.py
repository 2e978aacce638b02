"""Render a report in a format."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .annotations import github
from .document import Document
from .junit import junit
from .markdown import markdown
from .sarif import sarif
from .text import Page, text


class Format(StrEnum):
    """Format of a report."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"


LOCATED = frozenset({Format.GITHUB, Format.SARIF, Format.JUNIT})
"""Formats that show files and lines."""


@dataclass(frozen=True)
class Report:
    """Report of a command; each form is made when a format asks for it.

    Attributes:
        document: Return the report as a document.
        record: Return the report as a JSON value.
        html: Return the report as an HTML page, if it has a page of its own.
    """

    document: Callable[[], Document]
    record: Callable[[], Any]
    html: Callable[[], str] | None = None


def render(report: Report, format: Format, page: Page | None = None) -> str:
    """Return a report in a format; it ends with a line break."""
    match format:
        case Format.TEXT:
            return text(report.document(), page)
        case Format.MARKDOWN:
            return markdown(report.document())
        case Format.JSON:
            return json.dumps(report.record(), indent=2, ensure_ascii=False) + "\n"
        case Format.GITHUB:
            return github(report.document())
        case Format.SARIF:
            return sarif(report.document())
        case Format.JUNIT:
            return junit(report.document())
        case Format.HTML:
            if report.html is not None:
                return report.html()
            from .html import html  # its templates take time to load

            return html(report.document())
