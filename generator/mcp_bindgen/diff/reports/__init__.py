"""Render comparisons: one module for each format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..accept import Accepted
from .github import github
from .json import json
from .markdown import markdown
from .text import text


class Format(StrEnum):
    """A form of the report."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"


@dataclass(frozen=True)
class Style:
    """The format of a report.

    Attributes:
        width: Where lines of text are folded.
        colour: Whether text is for a terminal that shows colours.
        witness: Whether text and Markdown show the witnesses; the other formats always do.
    """

    width: int = 80
    colour: bool = False
    witness: bool = False


def render(report: Accepted, format: Format, style: Style | None = None) -> str:
    """Return the report in one of its forms; it ends with a line break."""
    style = style or Style()
    match format:
        case Format.TEXT:
            return text(
                report.comparisons, width=style.width, colour=style.colour, witness=style.witness, walked=report.walked
            )
        case Format.MARKDOWN:
            return markdown(report.comparisons, witness=style.witness, walked=report.walked)
        case Format.JSON:
            return json(report)
        case Format.GITHUB:
            return github(report.comparisons, report.walked)
        case Format.HTML:
            from .html import html  # its templates take time to load

            return html(report.comparisons, report.walked)
