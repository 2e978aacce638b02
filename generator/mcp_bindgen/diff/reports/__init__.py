"""Render comparisons: one module for each format, loaded when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..accept import Accepted


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
            from .text import text

            return text(report.comparisons, width=style.width, colour=style.colour, witness=style.witness)
        case Format.MARKDOWN:
            from .markdown import markdown

            return markdown(report.comparisons, witness=style.witness)
        case Format.JSON:
            from .json import json

            return json(report)
        case Format.HTML:
            from .html import html

            return html(report.comparisons)
        case Format.GITHUB:
            from .github import github

            return github(report.comparisons)
