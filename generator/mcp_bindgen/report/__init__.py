"""Reports: one document model, and a renderer for each format."""

from .document import Document
from .render import LOCATED, Format, Report, render
from .text import Page

__all__ = ["LOCATED", "Document", "Format", "Page", "Report", "render"]
